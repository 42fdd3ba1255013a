const MOST_RUBRICS = 20;
/* The rubric as judges see it, and the judges with their settings. */
function setupView() {
  const { guidelines, judges, decisions, why } = data.setup;
  const shown = items.rubrics.slice(0, MOST_RUBRICS);
  return [
    h("div", { class: "title" }, h("h1", {}, "Rubric and judges"), h("p", { class: "soft" }, `${plural(items.rubrics.length, "rubric")}, ${plural(run.judges.length, "judge")}`)),
    shown.map((rubric, at) => rubricOf(rubric, guidelines[at] || [], items.rubrics.length > 1 ? `Rubric ${at + 1}` : "Rubric")),
    items.rubrics.length > shown.length ? h("p", { class: "soft" }, `The first ${MOST_RUBRICS} of ${count(items.rubrics.length)} rubrics are shown.`) : null,
    why ? h("p", { class: "soft" }, "The judges' settings are not available: ", said(why)) : null,
    judges.length ? section("Judges", null, h("div", { class: "settings" }, judges.map((one) => h("div", {}, said(one.name, "h3"), settingsTable(one.name, one.settings))))) : null,
    decisions.length ? section("Combining votes", null, settingsTable("Combining votes", decisions)) : null,
  ];
}
function settingsTable(caption, pairs) {
  return h("table", { class: "pairs" }, h("caption", { class: "hidden" }, visible(caption)), h("tbody", {}, pairs.map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, nameOf(name.replaceAll("_", " "))), h("td", {}, said(value, "span", "text"))))));
}
function rubricOf(rubric, guidelines, title) {
  return section(title, null,
    guidelines.map((one) => said(one, "p", "text guidelines")),
    h("div", { class: "scroll-x" }, h("table", { class: "figures" }, h("caption", { class: "hidden" }, title),
      h("thead", {}, h("tr", {}, ["Criterion", "Requirement", "Answers", "Weight"].map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, rubric.map((at) => h("tr", {},
        h("th", { scope: "row" }, link(address("criteria", [at]), nameOf(criteria[at].name))),
        h("td", { "data-label": "Requirement" }, said(criteria[at].requirement || "–", "span", "text")),
        h("td", { "data-label": "Answers" }, !criteria[at].answers.length ? criteria[at].level : criteria[at].answers.map(([label, value], k) => [k ? ", " : null, said(label), value === null ? null : h("span", { class: "soft num" }, ` ${num(value, 1)}`)])),
        h("td", { "data-label": "Weight" }, criteria[at].weight === undefined || criteria[at].part_of ? "–" : num(criteria[at].weight, Number.isInteger(criteria[at].weight) ? 0 : 2))))))));
}
