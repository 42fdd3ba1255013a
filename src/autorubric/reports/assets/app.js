const VIEWS = [
  ["overview", "Overview"],
  ["items", "Items"],
  ["heat", "Heat map"],
  ["criteria", "Criteria"],
  ["judges", "Judges"],
  ["setup", "Rubric"],
  ...(compare ? [["compare", "Comparison"]] : []),
  ...(byId("critique") ? [["critique", "Critique"]] : []),
];
const main = byId("main"), search = byId("search");
let shownView = null;

function draw() {
  const { view, parts, query } = readAddress();
  const known = VIEWS.some(([name]) => name === view) || view === "item" ? view : "overview";
  const critique = byId("critique");
  if (critique) critique.hidden = known !== "critique";
  const made = {
    overview: () => overviewView(),
    items: () => itemsView(query),
    heat: () => heatView(query),
    item: () => itemView(parts, query),
    criteria: () => criteriaView(parts),
    judges: () => judgesView(),
    setup: () => setupView(),
    compare: () => compareView(),
    critique: () => [],
  }[known]();
  main.replaceChildren(...made.flat(Infinity).filter(Boolean));
  main.dataset.view = known;
  main.hidden = known === "critique";
  for (const anchor of byId("nav").querySelectorAll("a")) {
    const on = anchor.dataset.view === (known === "item" ? "items" : known);
    if (on) {
      anchor.setAttribute("aria-current", "page");
      const bar = byId("nav");
      if (bar.scrollWidth > bar.clientWidth) bar.scrollLeft = anchor.offsetLeft - bar.offsetLeft - 40;
    }
    else anchor.removeAttribute("aria-current");
  }
  const name = known === "item" ? items.id[Number(parts[0])] || "Item" : VIEWS.find(([one]) => one === known)[1];
  document.title = `${visible(name)} · ${visible(run.name)}`;
  if (document.activeElement !== search) search.value = query.get("q") || "";
  if (known === "items" || known === "heat") say(main.querySelector("#found").textContent);
  const page = `${known}/${parts.join("/")}`;
  if (shownView !== null && shownView !== page) {
    scrollTo(0, 0);
    if (document.activeElement !== search) main.focus({ preventScroll: true });
  }
  shownView = page;
}

byId("run-name").append(said(run.name));
byId("nav").append(...VIEWS.map(([name, words]) => h("a", { href: address(name), "data-view": name }, words)));
addEventListener("hashchange", () => { if (location.hash !== "#main") draw(); });
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });

let typing = 0;
search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    const { view, query } = readAddress();
    const to = view === "heat" ? "heat" : "items";
    const kept = view === "items" || view === "heat" ? Object.fromEntries(query) : {};
    location.hash = address(to, [], { ...kept, q: search.value.trim() });
  }, 150);
});
addEventListener("keydown", (event) => {
  const inField = event.target.closest("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !inField) {
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "Escape") {
    const { view, query } = readAddress();
    if (event.target === search && search.value) {
      search.value = "";
      search.dispatchEvent(new Event("input"));
    } else if (event.target === search) main.focus();
    else if (view === "item") location.hash = address("items", [], Object.fromEntries([...query].filter(([key]) => key !== "c")));
    else if (view === "criteria") location.hash = address("criteria");
    else if (query.toString()) location.hash = address(view);
    else if (view !== "overview") location.hash = address("overview");
  } else if (!inField && readAddress().view === "item" && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
    const step = main.querySelector(`a[data-step="${event.key === "ArrowLeft" ? "prev" : "next"}"]`);
    if (step) step.click();
  }
});

const root = document.documentElement, theme = byId("theme");
const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
function showTheme() {
  theme.textContent = dark() ? "Light" : "Dark";
  theme.setAttribute("aria-pressed", String(dark()));
  theme.setAttribute("aria-label", dark() ? "Switch to light colours" : "Switch to dark colours");
}
theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; showTheme(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
matchMedia("(max-width: 640px)").addEventListener("change", draw);
showTheme();
draw();
