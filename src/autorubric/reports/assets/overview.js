function overviewView() {
  const o = data.overview;
  const facts = [
    run.n_dataset > run.n_items ? `${plural(run.n_items, "item")} finished, ${count(run.n_dataset - run.n_items)} unfinished` : plural(run.n_items, "item"),
    plural(criteria.length, "criterion", "criteria"),
    plural(run.judges.length, "judge"),
    run.started.slice(0, 16).replace("T", " "),
  ];
  return [
    h("div", { class: "title" }, h("h1", {}, said(run.name)), h("p", { class: "soft" }, run.dataset ? [said(run.dataset), " · "] : null, facts.join(" · "))),
    headline(o),
    h("div", { class: "two" }, h("div", { class: "stack" }, distribution(o), criteriaGlance()), lookFirst()),
    remarks(),
  ];
}
function tile(label, value, note) {
  return h("div", { class: "tile" }, h("dt", {}, label), h("dd", {}, value, note ? h("span", { class: "tile-note" }, note) : null));
}
function figureTile(label, figure, share) {
  if (!defined(figure)) return { missing: `${label} (${figure && figure.why ? figure.why : "unknown"})` };
  const interval = ends(figure), told = (v) => (share ? percent(v) : num(v));
  return tile(label, told(figure.v), interval ? `${told(interval[0])} to ${told(interval[1])}` : figure.why);
}
function headline(o) {
  const told = [
    o.mean === null ? { missing: "Mean score (no item has a score)" } : tile("Mean score", num(o.mean), `median ${num(o.median)}, middle half ${num(o.q25)} to ${num(o.q75)}`),
    tile("Items without a score", count(run.n_failed), run.n_partly ? `${count(run.n_partly)} of ${plural(run.n_items, "item")} partly scored` : `of ${plural(run.n_items, "item")}`),
    tile("Verdicts lost or assumed", count(run.verdicts.lost + run.verdicts.assumed),
      `${count(run.verdicts.lost)} lost, ${count(run.verdicts.assumed)} assumed of ${count(run.verdicts.asked)} requested; ${count(run.verdicts.answered)} answered, ${count(run.verdicts.abstained)} abstained${run.verdicts.not_judged ? `; ${count(run.verdicts.not_judged)} not judged` : ""}`),
    ...(run.has_truth ? data.metrics.overview.map((one) => figureTile(one.name, o.metrics[one.key], one.share)) : data.metrics.overview.slice(0, 1).map((one) => ({ missing: `${one.name} (no item has a label)` }))),
    run.cost === null ? { missing: "Cost (no vote has a known price)" } : tile("Cost", money(run.cost), run.tokens ? `${count(run.tokens)} tokens` : null),
    tile("Duration", duration(run.seconds), plural(run.n_votes, "vote")),
  ];
  const missing = told.filter((one) => one && one.missing).map((one) => withMinus(one.missing));
  return [h("dl", { class: "tiles" }, told.filter((one) => one && !one.missing)), missing.length ? h("p", { class: "soft small missing" }, `Not available: ${missing.join("; ")}.`) : null];
}
function distribution(o) {
  if (!o.counts.length) return section("Scores", null, h("p", { class: "none" }, "No item has a score."));
  const series = [{ counts: o.counts }];
  if (o.truth_counts && o.same_edges) series.push({ counts: o.truth_counts });
  const label = `Histogram of ${plural(o.n_scored, "score")}: mean ${num(o.mean)}, median ${num(o.median)}`;
  const key = series.length > 1
    ? h("p", { class: "legend" }, h("span", {}, h("span", { class: "key key-fill" }), "judges"), h("span", {}, h("span", { class: "key key-line" }), "labels, on the labelled criteria"))
    : null;
  return section("Scores", `number of items per score; ${plural(o.n_scored, "item")} in total`, histogram(o.edges, series, label), key);
}
const LOOK = { failed: "Failed", wrong: "Wrong", split: "Split", abstained: "Abstained", low: "Low" };
function lookFirst() {
  const list = data.first.map((one) =>
    h("li", {}, h("span", { class: `badge badge-${one.kind}` }, LOOK[one.kind]),
      h("a", { href: address("item", [one.item], one.criterion === null ? {} : { c: one.criterion }) },
        h("span", { class: "look-id" }, said(items.id[one.item]), one.criterion === null ? null : [h("span", { class: "soft" }, " · "), said(criteria[one.criterion].name)]),
        said(one.why, "span", "look-why"))));
  const more = KINDS.filter(([kind]) => data.counts[kind].items).map(([kind, , words]) => link(address("items", [], { f: kind }), `${words} (${count(data.counts[kind].items)})`));
  return section("Items to check first", null,
    list.length ? h("ol", { class: "looks" }, list) : h("p", { class: "soft" }, "No failures, wrong answers or split votes."),
    more.length ? h("p", { class: "more" }, "All: ", more.map((one, at) => [at ? " · " : null, one])) : null);
}
function criteriaGlance() {
  const shown = criteria.map((one, at) => ({ ...one, at })).filter((one) => !one.part_of).slice(0, 10);
  const plotted = data.metrics.criteria.find((metric) => metric.plot && criteria.some((one) => defined(one.metrics[metric.key])));
  const axis = plotted && signedAxis(plotted.key);
  return section("Criteria", criteria.length > shown.length ? `${shown.length} of ${criteria.length}` : null,
    h("div", { class: "scroll-x" }, h("table", { class: "figures" }, h("caption", { class: "hidden" }, "Criteria at a glance"),
      h("thead", {}, h("tr", {}, ["Criterion", "Mean value", plotted ? plotted.name : null, plotted ? "" : null].filter((one) => one !== null).map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, shown.map((one) => h("tr", {},
        h("th", { scope: "row" }, link(address("criteria", [one.at]), nameOf(one.name))),
        h("td", { "data-label": "Mean value" }, figureText(one.mean)),
        plotted ? h("td", { "data-label": plotted.name }, one.metrics[plotted.key] ? figureText(one.metrics[plotted.key]) : "–") : null,
        plotted ? h("td", {}, whisker(one.metrics[plotted.key], ...axis, 0)) : null))))),
    h("p", { class: "more" }, link(address("criteria"), "All criteria")));
}
function remarks() {
  const told = [...run.notices, ...run.warnings];
  if (run.n_cut) told.push(`${plural(run.n_cut, "text")} ${run.n_cut === 1 ? "is" : "are"} truncated: submissions, queries and references after ${count(run.most_chars)} characters, reasons after 8,000.`);
  if (!told.length) return null;
  const list = h("ul", { class: "remarks" }, told.map((one) => said(withMinus(one), "li")));
  return section(`Warnings (${count(told.length)})`, null, told.length < 4 ? list : h("details", {}, h("summary", {}, "Show all"), list));
}
