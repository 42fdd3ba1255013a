// Rows are drawn as they become visible: of ten thousand rows, about forty are in the page at a time.
function virtualGrid({ label, rows, columns, height, head, draw, open, moved, width = null }) {
  const body = h("div", { class: "v-body", role: "rowgroup" });
  const host = h("div", { class: "v-grid", role: "grid", tabindex: 0, "aria-label": label, "aria-rowcount": rows + 1, "aria-colcount": columns }, head, body);
  let active = 0, column = 0, drawn = [-1, -1], waiting = false, printing = false;
  body.style.height = `${rows * height}px`;
  if (width) { body.style.width = `${width}px`; if (head) head.style.width = `${width}px`; }
  const headHeight = () => (head ? head.offsetHeight : 0);
  function redraw(force) {
    waiting = false;
    const room = host.clientHeight || 600;
    const first = Math.max(0, Math.floor((host.scrollTop - headHeight()) / height) - 6);
    const last = Math.min(rows, printing ? first + 300 : Math.ceil((host.scrollTop + room) / height) + 6);
    if (!force && first === drawn[0] && last === drawn[1]) return;
    drawn = [first, last];
    const made = [];
    for (let at = first; at < last; at++) {
      const row = draw(at, column, at === active);
      row.id = `row-${at}`;
      row.setAttribute("role", "row");
      row.setAttribute("aria-rowindex", at + 2);
      row.style.transform = `translateY(${at * height}px)`;
      row.style.height = `${height}px`;
      if (at === active) row.classList.add("active");
      made.push(row);
    }
    body.replaceChildren(...made);
    const current = byId(moved ? `cell-${active}-${column}` : `row-${active}`);
    if (current) host.setAttribute("aria-activedescendant", current.id);
    else host.removeAttribute("aria-activedescendant");
  }
  function reveal() {
    const top = active * height, room = host.clientHeight - headHeight();
    if (top < host.scrollTop) host.scrollTop = top;
    else if (top + height > host.scrollTop + room) host.scrollTop = top + height - room;
  }
  function go(row, toColumn) {
    active = Math.min(Math.max(row, 0), Math.max(rows - 1, 0));
    column = Math.min(Math.max(toColumn, 0), Math.max(columns - 1, 0));
    reveal();
    if (moved && rows) moved(active, column, host);
    redraw(true);
  }
  host.addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(() => redraw(false)); } }, { passive: true });
  host.addEventListener("keydown", (event) => {
    if (event.target !== host || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((host.clientHeight - headHeight()) / height) - 1);
    const steps = { ArrowDown: [1, 0], ArrowUp: [-1, 0], PageDown: [page, 0], PageUp: [-page, 0] };
    if (moved) Object.assign(steps, { ArrowRight: [0, 1], ArrowLeft: [0, -1] });
    if (event.key in steps) go(active + steps[event.key][0], column + steps[event.key][1]);
    else if (event.key === "Home") go(moved && !event.shiftKey ? active : 0, 0);
    else if (event.key === "End") go(moved && !event.shiftKey ? active : rows - 1, moved ? columns - 1 : 0);
    else if (event.key === "Enter" && rows) open(active, column);
    else return;
    event.preventDefault();
  });
  host.addEventListener("focus", () => { if (moved && rows) moved(active, column, host); });
  for (const [event, on] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => { if (host.isConnected) { printing = on; redraw(true); } });
  }
  new ResizeObserver(() => redraw(true)).observe(host);
  requestAnimationFrame(() => redraw(true));
  return { host, go, redraw };
}
function badge(kind, n = null) {
  const told = { wrong: "wrong", split: "split", abstained: "abstained", failed: "failed" }[kind];
  return h("span", { class: `badge badge-${kind}` }, n !== null && n > 1 ? `${n} ${told}` : told);
}
function scoreCell(score) {
  return h("span", { class: "score" }, h("span", { class: "num" }, num(score)), score === null ? null : bar(score, ""));
}
/* Filters over a list of items; the selection is kept in the address. */
function filters(view, query) {
  const chosen = (query.get("f") || "").split(",").filter(Boolean);
  const asked = Object.fromEntries(query);
  const to = (changes) => { location.hash = address(view, [], { ...asked, ...changes }); };
  const kinds = KINDS.filter(([kind]) => kind !== "wrong" || run.has_truth).map(([kind, , words]) => [kind, words, data.counts[kind].items]);
  if (compare) kinds.push(["changed", "Changed", compare.changed.filter(Boolean).length]);
  const buttons = kinds.map(([kind, words, n]) => {
    const on = chosen.includes(kind);
    const next = on ? chosen.filter((one) => one !== kind) : [...chosen, kind];
    return h("button", { type: "button", class: "chip", "data-filter": kind, "aria-pressed": String(on), onclick: () => to({ f: next.join(",") }) }, words, " ", h("span", { class: "num soft" }, count(n)));
  });
  const pick = h("select", { "aria-label": "Criterion", onchange: (event) => to({ c: event.target.value }) }, h("option", { value: "" }, "Any criterion"),
    criteria.slice(0, 500).map((one, at) => h("option", { value: at, selected: query.get("c") === String(at) }, visible(one.name))));
  const clear = chosen.length || query.get("q") || query.get("c") ? h("button", { type: "button", class: "quiet", "data-filter": "clear", onclick: () => to({ f: "", q: "", c: "" }) }, "Clear") : null;
  return h("div", { class: "filters", role: "group", "aria-label": "Filters" }, buttons, pick, clear);
}
