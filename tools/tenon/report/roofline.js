// SPDX-License-Identifier: Apache-2.0
// The roofline of each place: work a second over work a byte, both on logarithmic scales, under the roofs that are
// known.
const roofline = {
  width: 900, height: 420, left: 84, right: 20, top: 16, bottom: 44,

  draw() {
    const container = document.getElementById("rooflines");
    for (const place of report.places) {
      const rows = report.rows.filter(r => r.where === place.name && r.gflops > 0 && r.intensity > 0);
      if (rows.length) container.append(make("h3", {}, place.name), roofline.chart(place, rows));
    }
    if (!container.firstChild)
      document.getElementById("roofline").hidden = true;
  },

  /// A scale from the decades around the values to pixels.
  scale(values, from, to) {
    const low = Math.floor(Math.log10(Math.min(...values)) - 0.1);
    const high = Math.ceil(Math.log10(Math.max(...values)) + 0.1);
    const at = value => from + (Math.log10(value) - low) / (high - low) * (to - from);
    return {low, high, at, decades: Array.from({length: high - low + 1}, (_, i) => 10 ** (low + i))};
  },

  chart(place, rows) {
    const {width, height, left, right, top, bottom} = roofline;
    const memory = place.roofs.filter(roof => roof.gbps), work = place.roofs.filter(roof => roof.gflops);
    const ridges = memory.flatMap(m => work.map(w => w.gflops / m.gbps));
    const x = roofline.scale([...rows.map(r => r.intensity), ...ridges], left, width - right);
    const y = roofline.scale([...rows.map(r => r.gflops), ...work.map(w => w.gflops)], height - bottom, top);
    const svg = make("svg", {viewBox: `0 0 ${width} ${height}`, role: "group",
                             "aria-label": "Roofline of " + place.name + ": GFLOP/s over FLOP per byte"});
    const tick = value => value >= 1e6 || value < 1e-3 ? value.toExponential(0) : String(Number(value.toPrecision(1)));
    const label = (place, content) => make("text", place, content);
    const edge = height - bottom;
    for (const value of x.decades)
      svg.append(make("line", {class: "grid", x1: x.at(value), x2: x.at(value), y1: top, y2: edge}),
                 label({class: "soft", x: x.at(value), y: edge + 15, "text-anchor": "middle"}, tick(value)));
    for (const value of y.decades)
      svg.append(make("line", {class: "grid", x1: left, x2: width - right, y1: y.at(value), y2: y.at(value)}),
                 label({class: "soft", x: left - 6, y: y.at(value) + 4, "text-anchor": "end"}, tick(value)));
    const turned = `rotate(-90 20 ${height / 2})`;
    svg.append(label({x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle"}, "FLOP per byte"),
               label({x: 20, y: height / 2, "text-anchor": "middle", transform: turned}, "GFLOP/s"));
    roofline.roofs(svg, memory, work, x, y);
    for (const row of rows) svg.append(roofline.point(row, x, y));
    return svg;
  },

  roofs(svg, memory, work, x, y) {
    const xLow = 10 ** x.low, xHigh = 10 ** x.high;
    const top = work.length ? Math.max(...work.map(w => w.gflops)) : 10 ** y.high;
    const style = roof => "roof" + (roof.measured ? "" : " sheet");
    const rate = roof => roof.gbps ? text.short(roof.gbps) + " GB/s" : text.short(roof.gflops) + " GFLOP/s";
    const note = roof => roof.name + " " + rate(roof) + (roof.measured ? ", measured" : ", datasheet");
    for (const roof of memory) {
      const end = Math.min(xHigh, top / roof.gbps);
      const begin = Math.max(xLow, 10 ** y.low / roof.gbps);
      if (end <= begin) continue;
      const from = {x: x.at(begin), y: y.at(begin * roof.gbps)}, to = {x: x.at(end), y: y.at(end * roof.gbps)};
      const middle = {x: from.x + 0.55 * (to.x - from.x), y: from.y + 0.55 * (to.y - from.y)};
      const angle = Math.atan2(to.y - from.y, to.x - from.x) * 180 / Math.PI;
      svg.append(make("line", {class: style(roof), x1: from.x, y1: from.y, x2: to.x, y2: to.y}),
                 make("text", {x: middle.x, y: middle.y - 6, "text-anchor": "middle",
                               transform: `rotate(${angle} ${middle.x} ${middle.y})`}, note(roof)));
    }
    for (const roof of work) {
      const begin = memory.length ? Math.max(xLow, roof.gflops / Math.max(...memory.map(m => m.gbps))) : xLow;
      const level = y.at(roof.gflops);
      svg.append(make("line", {class: style(roof), x1: x.at(begin), y1: level, x2: x.at(xHigh), y2: level}),
                 make("text", {x: x.at(xHigh), y: level - 5, "text-anchor": "end"}, note(roof)));
    }
  },

  point(row, x, y) {
    const lines = [row.label, text.seconds(row.seconds.median) + " " + text.spread(row.seconds),
                   text.short(row.gbps) + " GB/s, " + text.short(row.gflops) + " GFLOP/s",
                   text.short(row.intensity) + " FLOP per byte"];
    if (row.ofRoof) lines.push((100 * row.ofRoof).toFixed(0) + "% of the roof; bound by " + row.boundBy);
    const about = {class: "point", tabindex: 0, role: "button", "aria-label": lines.join(", "), "data-row": row.index};
    const group = make("g", about,
                       make("circle", {cx: x.at(row.intensity), cy: y.at(row.gflops), r: 6}));
    explain(group, lines.join("\n"));
    onActivate(group, () => chosen.set(row));
    return group;
  },
};
chosen.listeners.push(row => {
  for (const point of document.querySelectorAll(".point"))
    point.classList.toggle("chosen", row !== null && Number(point.dataset.row) === row.index);
});
