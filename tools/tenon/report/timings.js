// SPDX-License-Identifier: Apache-2.0
// Medians as bars with their intervals, ours beside the peers'; and the history of a search for settings.
const timings = {
  draw() {
    const container = document.getElementById("bars");
    for (const row of report.rows.filter(r => r.seconds)) {
      const bars = [{name: "tenon", kind: "own", seconds: row.seconds}, ...row.peers];
      const about = {class: "case", "data-row": row.index};
      container.append(make("div", about, make("h3", {}, row.label), timings.chart(bars)));
    }
    if (!container.firstChild)
      container.append(make("p", {class: "hint"}, "Nothing was timed."));
  },

  chart(bars) {
    const width = 900, left = 130, right = 190, step = 20;
    const most = Math.max(...bars.filter(bar => bar.seconds).map(bar => bar.seconds.high));
    const at = value => left + value / most * (width - left - right);
    const inWords = bars.map(bar => bar.name + " " + (bar.seconds ? text.seconds(bar.seconds.median) : bar.status));
    const svg = make("svg", {viewBox: `0 0 ${width} ${step * bars.length + 4}`, role: "img",
                             "aria-label": inWords.join(", ")});
    bars.forEach((bar, i) => {
      const y = step * i + 3;
      svg.append(make("text", {x: left - 8, y: y + 11, "text-anchor": "end"}, bar.name));
      if (!bar.seconds) {
        svg.append(make("text", {class: "soft", x: left, y: y + 11}, bar.status));
        return;
      }
      const {median, low, high} = bar.seconds;
      const interval = `${bar.name}: ${text.seconds(median)} [${text.seconds(low)}, ${text.seconds(high)}]`;
      const whisker = (x1, x2, y1, y2) => make("line", {class: "whisker", x1: at(x1), x2: at(x2), y1, y2});
      const ratio = bar.ratio ? ", " + bar.ratio.toFixed(2) + "\u00d7" : "";
      const box = {class: "bar-" + bar.kind, x: left, y, width: Math.max(1, at(median) - left), height: 14, rx: 2};
      svg.append(make("rect", box, make("title", {}, interval)), whisker(low, high, y + 7, y + 7),
                 whisker(low, low, y + 3, y + 11), whisker(high, high, y + 3, y + 11),
                 make("text", {x: at(high) + 8, y: y + 11},
                      text.seconds(median) + " " + text.spread(bar.seconds) + ratio));
    });
    return svg;
  },
};

const tuning = {
  draw() {
    const container = document.getElementById("tunings");
    for (const history of report.tuning) container.append(make("h3", {}, history.label), tuning.chart(history.trials));
    if (!report.tuning.length) document.getElementById("tuning").hidden = true;
  },

  /// Every trial in the order it was made, and the best so far.
  chart(trials) {
    const width = 900, height = 200, left = 80, bottom = 30, top = 10;
    const times = trials.filter(trial => trial.seconds).map(trial => trial.seconds);
    const svg = make("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": trials.length + " trials"});
    if (!times.length) return svg;
    const low = Math.log(Math.min(...times)), high = Math.max(Math.log(Math.max(...times)), low + 1e-9);
    const x = i => left + (i + 0.5) / trials.length * (width - left - 10);
    const y = value => top + (high - Math.log(value)) / (high - low) * (height - top - bottom);
    let best = Infinity, path = "";
    trials.forEach((trial, i) => {
      if (!trial.seconds) return;
      path += best === Infinity ? `M${x(i)} ${y(trial.seconds)}` : "";
      if (trial.seconds < best) path += `H${x(i)}V${y(trial.seconds)}`;
      best = Math.min(best, trial.seconds);
      const point = make("g", {class: "point", tabindex: 0}, make("circle", {cx: x(i), cy: y(trial.seconds), r: 4}));
      explain(point, trial.label + "\n" + text.seconds(trial.seconds));
      svg.append(point);
    });
    const beside = (value, at) =>
      make("text", {class: "soft", x: left - 8, y: at, "text-anchor": "end"}, text.seconds(value));
    svg.prepend(make("path", {class: "roof", d: path + `H${width - 10}`}),
                beside(best, y(best)), beside(Math.max(...times), top + 8),
                make("text", {x: (left + width) / 2, y: height - 8, "text-anchor": "middle"}, "trial"));
    return svg;
  },
};
chosen.listeners.push(row => {
  for (const box of document.querySelectorAll(".case"))
    box.classList.toggle("chosen", row !== null && Number(box.dataset.row) === row.index);
});
