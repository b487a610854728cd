// SPDX-License-Identifier: Apache-2.0
// A kernel's C++ beside what it becomes. Choosing a line on either side marks every line that came from it.
const viewer = {
  kernel: null, phase: null, line: null,

  draw() {
    if (!report.code.length) {
      document.getElementById("code").hidden = true;
      return;
    }
    const select = make("select", {id: "kernel", onchange: event => viewer.open(report.code[event.target.value])},
                        ...report.code.map((kernel, i) => make("option", {value: i}, kernel.label)));
    document.getElementById("viewer").append(
      make("p", {class: "controls"}, make("label", {}, "Kernel ", select),
           make("span", {class: "hint"}, "Choose a line, or walk with ", make("kbd", {}, "\u2191"), " ",
                make("kbd", {}, "\u2193"))),
      make("div", {class: "tabs", role: "tablist", "aria-label": "Phases of compilation"}),
      make("div", {class: "panes"},
           make("div", {class: "pane", id: "source"}, make("h3", {}), make("div", {class: "listing"})),
           make("div", {class: "pane", id: "listing", role: "tabpanel"}, make("h3", {}),
                make("div", {class: "listing"}))));
    viewer.open(report.code[0]);
  },

  open(kernel) {
    viewer.kernel = kernel;
    document.getElementById("kernel").value = report.code.indexOf(kernel);
    const source = document.getElementById("source");
    source.firstChild.textContent = kernel.file || "source";
    viewer.fill(source.lastChild, kernel.source.map((line, i) => [line, kernel.firstLine + i]), kernel.firstLine);
    if (!kernel.source.length) source.lastChild.append(make("p", {class: "hint"}, "The source is not at hand."));
    const tabs = document.querySelector("#viewer .tabs");
    tabs.replaceChildren(...kernel.listings.map(listing => make("button", {
      type: "button", role: "tab", "aria-controls": "listing", onclick: () => viewer.show(listing)}, listing.phase)));
    tabs.onkeydown = event => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      const all = [...tabs.children], now = all.indexOf(document.activeElement);
      const next = all[(now + step + all.length) % all.length];
      next.focus();
      next.click();
    };
    const same = kernel.listings.find(listing => listing.phase === viewer.phase);
    viewer.line = null;
    viewer.show(same || kernel.listings[0]);
  },

  show(listing) {
    if (!listing) return;
    viewer.phase = listing.phase;
    for (const tab of document.querySelectorAll("#viewer [role=tab]")) {
      const isChosen = tab.textContent === listing.phase;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
    }
    const pane = document.getElementById("listing");
    pane.firstChild.textContent = listing.title;
    viewer.fill(pane.lastChild, listing.lines, 1);
    viewer.mark();
  },

  /// Lines are [text, source line or 0].
  fill(container, lines, first) {
    const one = ([content, line], i) => make("div", {"data-number": first + i, "data-line": line || null,
                                                     tabindex: line ? -1 : null}, content || " ");
    container.replaceChildren(...lines.map(one));
    container.querySelector("[data-line]")?.setAttribute("tabindex", "0");
    container.onclick = event => viewer.choose(event.target.closest("[data-line]"), container);
    container.onkeydown = event => {
      const step = {ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling"}[event.key];
      if (!step) return;
      event.preventDefault();
      let next = document.activeElement[step];
      while (next && !next.dataset.line) next = next[step];
      if (next) {
        next.focus();
        viewer.choose(next, container);
      }
    };
  },

  choose(element, container) {
    if (!element) return;
    viewer.line = element.dataset.line;
    viewer.mark(container);
  },

  /// Scrolls the pane that was not used to the first line that belongs together with the chosen one.
  mark(used) {
    for (const pane of document.querySelectorAll("#viewer .pane")) {
      let first = null;
      for (const line of pane.querySelectorAll(".listing div")) {
        const isChosen = viewer.line !== null && line.dataset.line === viewer.line;
        line.classList.toggle("chosen", isChosen);
        if (isChosen && !first) first = line;
      }
      if (first && pane.lastChild !== used) pane.scrollTop = first.offsetTop - pane.clientHeight / 3;
    }
  },
};
chosen.listeners.push(row => {
  if (row && row.code !== null && report.code[row.code]) viewer.open(report.code[row.code]);
});
