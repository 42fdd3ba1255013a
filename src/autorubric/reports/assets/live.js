// A page shown by a server: it follows the run and accepts labels.
const POLL_MS = 2000;
const stateBar = h("div", { class: "live", role: "status" });
const stateText = h("span", {}, ""), updateButton = h("button", { type: "button", class: "chip", hidden: true, onclick: () => location.reload() }, "Update figures");
stateBar.append(stateText, updateButton);
let typed = false;
// The number of labels on the server when the label of a cell was last shown or saved.
const labelsAt = new Map();

function showState(state) {
  const parts = [
    state.done < state.total ? `${count(state.done)} of ${count(state.total)} items` : plural(state.total, "item"),
    state.cost === null ? null : money(state.cost),
    state.failed ? `${count(state.failed)} failed` : null,
    state.saved ? `${plural(state.saved, "label")} saved` : null,
  ];
  stateText.textContent = parts.filter(Boolean).join(" · ");
  stateBar.dataset.done = state.done;
  stateBar.classList.toggle("going", state.done < state.total);
  if (state.version === live.version) return;
  // A person who is labelling decides when the page changes under their hands.
  if (typed || readAddress().view === "item") updateButton.hidden = false;
  else location.reload();
}
async function poll() {
  try {
    const answer = await fetch("state", { cache: "no-store" });
    if (answer.ok) showState(await answer.json());
    stateBar.classList.remove("off");
  } catch {
    stateText.textContent = "The server has stopped. Run autorubric view again to continue.";
    stateBar.classList.add("off");
  }
  setTimeout(poll, POLL_MS);
}
function labelForm(item, one, truth) {
  const form = one.at >= 0 ? live.forms[one.at] : null;
  if (!form) return h("p", { class: "soft small" }, "To label this criterion, use a page written by autorubric annotate.");
  const name = criteria[one.at].label_name || criteria[one.at].name;
  const message = h("span", { class: "soft small", role: "status" }, "");
  const cell = `${item} ${one.at}`;
  const mark = (value) => { for (const button of node.querySelectorAll("button[data-code]")) button.setAttribute("aria-pressed", String(button.dataset.code === JSON.stringify(value))); };
  async function save(value) {
    message.textContent = "Saving …";
    try {
      const answer = await fetch("labels", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ item: items.id[item], criterion: name, value, labels: labelsAt.get(cell) ?? live.labels }) });
      const found = await answer.json();
      if (!answer.ok) throw new Error(found.error || answer.statusText);
      labelsAt.set(cell, found.labels);
      mark(value);
      message.textContent = "Saved.";
      updateButton.hidden = false;
    } catch (error) {
      message.textContent = `Not saved: ${visible(error.message)}`;
      updateButton.hidden = false;
    }
  }
  const controls = form.kind === "choice"
    ? form.choices.map((choice) => h("button", { type: "button", class: "chip", "data-code": JSON.stringify(choice.code), "aria-pressed": String(choice.label === truth || choice.code === truth), onclick: () => save(choice.code) }, said(choice.label)))
    : numberInput(form, truth, save);
  const node = h("div", { class: "labelling", role: "group", "aria-label": `Label of ${name}` }, h("span", { class: "soft small" }, "Label"), controls, message);
  return node;
}
function numberInput(form, truth, save) {
  const input = h("input", { type: "number", min: form.min, max: form.max, step: form.whole ? 1 : "any", value: truth === null ? "" : truth, "aria-label": "Label", oninput: () => { typed = true; } });
  const button = h("button", { type: "button", class: "chip", onclick: () => { if (input.value !== "") { typed = false; save(Number(input.value)); } } }, "Save");
  return [input, button];
}
document.querySelector(".top").after(stateBar);
poll();
