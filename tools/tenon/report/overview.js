// SPDX-License-Identifier: Apache-2.0
// What was measured, and the table: sorted by any column, filtered by words, walked by the arrow keys.
function showAbout() {
  const about = document.getElementById("about");
  for (const file of report.files) {
    const facts = Object.entries(file.facts).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
    about.append(make("h3", {}, file.name), make("dl", {}, ...facts));
    for (const warning of file.warnings) about.append(make("p", {class: "warning"}, warning));
  }
}

const columns = [
  {name: "kernel", value: r => r.kernel},
  {name: "shape", value: r => r.shape},
  {name: "type", value: r => r.dtype},
  {name: "where", value: r => r.where, optional: true},
  {name: "time", number: true, value: r => r.seconds?.median, show: r => text.seconds(r.seconds.median)},
  {name: "interval", number: true, optional: true,
   value: r => r.seconds && (r.seconds.high - r.seconds.low) / r.seconds.median, show: r => text.spread(r.seconds)},
  {name: "GB/s", number: true, value: r => r.gbps, show: r => text.short(r.gbps)},
  {name: "GFLOP/s", number: true, optional: true, value: r => r.gflops, show: r => text.short(r.gflops)},
  {name: "of roofline", number: true, value: r => r.ofRoof, show: r => (100 * r.ofRoof).toFixed(0) + "%"},
  {name: "best peer", number: true, value: r => r.bestPeer?.ratio,
   show: r => r.bestPeer.ratio.toFixed(2) + "\u00d7 " + r.bestPeer.name},
  {name: "state", value: r => r.status},
];

const overview = {
  sort: null, descending: false, rows: [],

  visible() {
    const words = document.getElementById("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = report.rows.filter(r => words.every(word => r.search.includes(word)));
    if (!overview.sort) return rows;
    const sign = overview.descending ? -1 : 1, value = overview.sort.value;
    return rows.sort((a, b) => {
      const x = value(a), y = value(b);
      if (x === undefined || x === null) return 1; // what has no value comes last, whichever way
      if (y === undefined || y === null) return -1;
      return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", {numeric: true}));
    });
  },

  classes(column) {
    return [column.number && "number", column.optional && "optional"].filter(Boolean).join(" ") || null;
  },

  cell(column, row) {
    const attributes = {class: overview.classes(column)};
    if (column.name === "state")
      return make("td", attributes, make("span", {class: "badge " + row.status}, row.status),
                  row.reason ? make("div", {class: "reason"}, row.reason) : null);
    const value = column.value(row);
    const known = value !== undefined && value !== null;
    return make("td", attributes, known ? (column.show ? column.show(row) : String(value)) : "\u2013");
  },

  draw() {
    const table = document.getElementById("table");
    const head = make("tr", {}, ...columns.map(column => make("th", {
      scope: "col", class: overview.classes(column),
      "aria-sort": overview.sort === column ? (overview.descending ? "descending" : "ascending") : "none",
    }, make("button", {type: "button", onclick: () => overview.sortBy(column)}, column.name))));
    overview.rows = overview.visible();
    const body = overview.rows.map((row, i) => {
      const about = {tabindex: i === 0 ? 0 : -1, "aria-selected": String(row === chosen.row), "data-row": row.index};
      const line = make("tr", about, ...columns.map(column => overview.cell(column, row)));
      onActivate(line, () => chosen.set(row));
      line.addEventListener("keydown", event => overview.walk(event, line));
      return line;
    });
    const focused = document.activeElement?.closest?.("#table th")?.textContent;
    table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...body));
    if (focused)
      [...table.querySelectorAll("th button")].find(button => button.textContent === focused)?.focus();
    document.getElementById("shown").textContent = overview.rows.length + " of " + report.rows.length;
  },

  sortBy(column) {
    // Numbers are first wanted largest first, but for times.
    const first = Boolean(column.number) && column.name !== "time" && column.name !== "interval";
    overview.descending = overview.sort === column ? !overview.descending : first;
    overview.sort = column;
    overview.draw();
  },

  walk(event, line) {
    const next = {ArrowDown: line.nextSibling, ArrowUp: line.previousSibling, Home: line.parentNode.firstChild,
                  End: line.parentNode.lastChild}[event.key];
    if (!next) return;
    event.preventDefault();
    line.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  },
};

document.getElementById("filter").addEventListener("input", () => overview.draw());
document.addEventListener("keydown", event => {
  if (event.key !== "/" || /^(INPUT|SELECT)$/.test(document.activeElement.tagName)) return;
  event.preventDefault();
  document.getElementById("filter").focus();
});
chosen.listeners.push(row => {
  for (const line of document.querySelectorAll("#table tbody tr"))
    line.setAttribute("aria-selected", String(row !== null && Number(line.dataset.row) === row.index));
});
