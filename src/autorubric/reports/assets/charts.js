// Plots as SVG; colours come from classes.
function histogram(edges, series, label) {
  const width = 640, height = 190, left = 34, bottom = 26, top = 10;
  const most = Math.max(1, ...series.flatMap((one) => one.counts));
  const bins = edges.length - 1, step = (width - left - 6) / bins;
  const y = (n) => top + (height - top - bottom) * (1 - n / most);
  const x = (value) => left + ((value - edges[0]) / (edges[bins] - edges[0] || 1)) * (bins * step);
  const plot = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot", role: "img", "aria-label": label });
  for (const tick of niceTicks(most, 3)) {
    plot.append(s("line", { class: "grid", x1: left, x2: width - 6, y1: y(tick), y2: y(tick) }));
    plot.append(s("text", { class: "tick", x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, count(tick)));
  }
  series[0].counts.forEach((n, at) => {
    const bar = s("rect", { class: "bar-fill", x: left + at * step + 1, y: y(n), width: Math.max(step - 2, 1), height: Math.max(height - bottom - y(n), 0), rx: 1 });
    bar.append(s("title", {}, `${num(edges[at])} to ${num(edges[at + 1])}: ${plural(n, "item")}`));
    plot.append(bar);
  });
  for (const one of series.slice(1)) {
    let path = `M ${left} ${height - bottom}`;
    one.counts.forEach((n, at) => { path += ` V ${y(n)} H ${left + (at + 1) * step}`; });
    plot.append(s("path", { class: "outline", d: `${path} V ${height - bottom}` }));
  }
  plot.append(s("line", { class: "axis", x1: left, x2: width - 6, y1: height - bottom, y2: height - bottom }));
  for (let at = 0; at <= 4; at++) {
    const value = edges[0] + ((edges[bins] - edges[0]) * at) / 4;
    plot.append(s("text", { class: "tick", x: x(value), y: height - 8, "text-anchor": at === 0 ? "start" : at === 4 ? "end" : "middle" }, num(value)));
  }
  return plot;
}
function niceTicks(most, n) {
  const raw = most / n, unit = 10 ** Math.floor(Math.log10(raw || 1));
  const step = Math.max(1, [1, 2, 5, 10].map((k) => k * unit).find((one) => one >= raw) || 1);
  const ticks = [];
  for (let tick = step; tick <= most; tick += step) ticks.push(tick);
  return ticks;
}
const nameOfMetric = (key) => data.metrics.names[key] || key.replaceAll("_", " ");
/* Metrics with a plot range from -1 to 1; if no value is below 0, the negative half is omitted. */
function signedAxis(key) {
  const below = [...criteria, ...data.judges.rows].map((one) => one.metrics[key]).some((one) => defined(one) && Math.min(one.v, (ends(one) || [0])[0]) < 0);
  return below ? [-1, 1] : [0, 1];
}
/* The value of a metric, with its plot if it has one. */
const metricCell = (metric, figure, axis) => (metric.plot ? h("span", { class: "with-plot" }, figureText(figure), whisker(figure, ...axis, 0)) : figureText(figure, { share: metric.share }));
/* The columns of the metrics of a view. */
function metricColumns(view, high = null) {
  return data.metrics[view].map((metric) => {
    const axis = metric.plot ? signedAxis(metric.key) : null;
    const figure = (row) => row.metrics[metric.key];
    return { name: metric.name, high, key: (row) => (defined(figure(row)) ? figure(row).v : null), cell: (row) => metricCell(metric, figure(row), axis) };
  });
}
/* An axis around 0 that contains the bounds of all these intervals. */
function axisAround(figures) {
  const far = figures.filter(defined).flatMap((one) => [one.v, ...(ends(one) || [])]).map(Math.abs);
  const most = Math.max(0.05, ...far);
  return [-most, most, 0];
}
/* A dot with its interval on an axis from low to high. */
function whisker(figure, low, high, zero = null) {
  if (!defined(figure)) return null;
  const width = 140, height = 30, pad = 12, line = 9;
  const x = (v) => pad + ((Math.min(Math.max(v, low), high) - low) / (high - low || 1)) * (width - 2 * pad);
  const plot = s("svg", { class: "whisker", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
  plot.append(s("line", { class: "grid", x1: pad, x2: width - pad, y1: line, y2: line }));
  for (const at of new Set([low, ...(zero === null ? [] : [zero]), high])) {
    plot.append(s("line", { class: "axis", x1: x(at), x2: x(at), y1: at === zero ? 2 : line - 3, y2: line + (at === zero ? 8 : 6) }));
    plot.append(s("text", { class: "tick-small", x: x(at), y: height - 3, "text-anchor": "middle" }, num(at, Number.isInteger(at) ? 0 : 2)));
  }
  const interval = ends(figure);
  if (interval) plot.append(s("line", { class: "range", x1: x(interval[0]), x2: x(interval[1]), y1: line, y2: line }));
  plot.append(s("circle", { class: "dot", cx: x(figure.v), cy: line, r: 4 }));
  return plot;
}
/* Observed rates by mean forecast; `bins` are pairs of the forecast and the rate. */
function reliabilityDiagram(bins, n, label) {
  const left = 34, top = 10, side = 176;
  const x = (v) => left + v * side, y = (v) => top + (1 - v) * side;
  const plot = s("svg", { viewBox: `0 0 220 ${side + 36}`, class: "plot", role: "img", "aria-label": visible(label) });
  for (const tick of [0, 0.5, 1]) {
    plot.append(s("line", { class: "grid", x1: x(0), x2: x(1), y1: y(tick), y2: y(tick) }), s("text", { class: "tick-small", x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, num(tick, 1)),
      s("text", { class: "tick-small", x: x(tick), y: y(0) + 16, "text-anchor": "middle" }, num(tick, 1)));
  }
  plot.append(s("line", { class: "axis", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
  for (const [forecast, rate] of bins.filter((one) => defined(one[1]))) {
    const [low, high] = ends(rate) || [rate.v, rate.v];
    plot.append(s("g", {}, s("title", {}, `mean forecast ${num(forecast)}, rate ${num(rate.v)} (${num(low)} to ${num(high)}), ${plural(rate.n, "item")}`),
      s("line", { class: "range", x1: x(forecast), x2: x(forecast), y1: y(low), y2: y(high) }), s("circle", { class: "dot", cx: x(forecast), cy: y(rate.v), r: 2 + 6 * Math.sqrt(rate.n / n) })));
  }
  return plot;
}
function bar(share, label) {
  return s(
    "svg",
    { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": label },
    s("rect", { class: "bar-track", width: 100, height: 8 }),
    share === null || share === undefined ? null : s("rect", { class: "bar-fill", width: 100 * Math.min(Math.max(share, 0), 1), height: 8 }),
  );
}
/* A matrix of counts or shares; every cell has its value as text, which the colour only repeats. */
function matrix({ rows, columns, value, tell, corner, caption, strongest = 1 }) {
  const shade = (v) => (v === null ? "" : `m${Math.round(Math.min(Math.max(v / strongest, 0), 1) * 6)}`);
  return h("div", { class: "scroll-x" },
    h("table", { class: "matrix" }, h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, h("td", { class: "corner" }, corner), columns.map((one) => h("th", { scope: "col", title: visible(one) }, said(one))))),
      h("tbody", {}, rows.map((name, i) => h("tr", {}, h("th", { scope: "row", title: visible(name) }, said(name)),
        columns.map((_, j) => h("td", { class: `num ${shade(value(i, j))}` }, tell(i, j))))))));
}
/* A table of figures that can be sorted by its columns. */
function sortable({ columns, rows, caption, start = null, descending = false, open = null }) {
  const body = h("tbody");
  const table = h("table", { class: "figures" }, h("caption", { class: "hidden" }, caption));
  let by = start, down = descending;
  const heads = columns.map((column, at) => {
    const button = h("button", { type: "button", onclick: () => { down = by === at ? !down : Boolean(column.high); by = at; draw(); say(`Sorted by ${column.name}`); } }, column.name);
    return h("th", { scope: "col", class: column.number ? "num" : null }, button);
  });
  table.append(h("thead", {}, h("tr", {}, heads)), body);
  function draw() {
    const order = rows.slice();
    if (by !== null) {
      const key = columns[by].key;
      order.sort((a, b) => {
        const x = key(a), y = key(b);
        if (x === null || x === undefined || y === null || y === undefined) return (x === null || x === undefined) - (y === null || y === undefined);
        return (down ? -1 : 1) * (typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y);
      });
    }
    heads.forEach((head, at) => (by === at ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort")));
    body.replaceChildren(...order.map((row) => h("tr", {}, columns.map((column, at) => h(at ? "td" : "th", { scope: at ? null : "row", class: column.number ? "num" : null, "data-label": column.name }, column.cell(row))))));
  }
  draw();
  const rowsAsCsv = () => [columns.map((one) => one.name), ...rows.map((row) => columns.map((one) => one.key(row)))];
  return [h("div", { class: "scroll-x" }, table), h("p", { class: "more" }, csvButton(caption, rowsAsCsv))];
}
/* A text that a spreadsheet would run as a formula begins with an apostrophe; numbers stay numbers. */
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const safe = /^[\s\p{C}\p{Z}]*[=+\-@＝＋－＠]|^[\t\r\n]/u.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
function csvButton(name, rows) {
  const save = () => {
    const lines = rows().map((row) => row.map(csvCell).join(","));
    // The byte order mark makes spreadsheets read the file as UTF-8.
    const address = URL.createObjectURL(new Blob(["\ufeff", lines.join("\r\n"), "\r\n"], { type: "text/csv" }));
    h("a", { href: address, download: `${run.name} ${name}.csv`.replace(/[^\p{L}\p{N}._-]+/gu, "-") }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    say(`Exported ${plural(lines.length - 1, "row")}`);
  };
  return h("button", { type: "button", class: "chip csv", onclick: save }, "Export CSV");
}
