"use strict";
(() => {
  const content = JSON.parse(document.getElementById("content").textContent);
  const app = document.getElementById("app");
  const CANNOT = "CANNOT_ASSESS";
  const FORMAT = 1;
  // Without a prototype: an item may well be called `__proto__`.
  const record = (held) => Object.assign(Object.create(null), held && typeof held === "object" ? held : {});
  const state = { rater: "", order: [], at: 0, current: 0, labels: record(), saved: true, stored: true };

  // Elements are made of texts alone: what a submission holds never becomes markup.
  function el(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== ""));
    return made;
  }

  // Orders: the same for the same seed, rater and purpose, in every browser.
  function hash(text) {
    let h = 2166136261;
    for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
    h = Math.imul(h ^ (h >>> 16), 2246822507);
    h = Math.imul(h ^ (h >>> 13), 3266489909);
    return (h ^ (h >>> 16)) >>> 0;
  }
  function shuffled(length, purpose) {
    let seed = hash(`${content.seed}\n${state.rater}\n${purpose}`);
    const next = () => {
      seed = (seed + 0x6d2b79f5) | 0;
      let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    const order = Array.from({ length }, (_, i) => i);
    for (let i = length - 1; i > 0; i -= 1) {
      const j = Math.floor(next() * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    return order;
  }
  const letter = (place) => (place < 26 ? String.fromCharCode(65 + place) : `#${place + 1}`);

  // What was labelled so far: kept by the browser, item by item and criterion by criterion.
  const storeKey = () => `autorubric-labels:${content.fingerprint}:${state.rater}`;
  function keep() {
    state.saved = false;
    try {
      localStorage.setItem(storeKey(), JSON.stringify({ at: state.at, labels: state.labels }));
      state.stored = true;
    } catch {
      state.stored = false;
    }
  }
  function recall() {
    try {
      const kept = JSON.parse(localStorage.getItem(storeKey()) || "{}");
      state.labels = record(kept.labels);
      for (const id of Object.keys(state.labels)) state.labels[id] = record(state.labels[id]);
      state.at = Number.isInteger(kept.at) && content.items[kept.at] ? kept.at : 0;
    } catch {
      state.labels = record();
    }
  }
  const item = () => content.items[state.order[state.at]];
  const labelOf = (id, name) => (Object.hasOwn(state.labels, id) ? state.labels[id][name] : undefined);
  const isAnswered = (label) => label !== undefined && label.value !== null && label.value !== undefined;
  const asked = (one) => one.criteria.filter((criterion) => !criterion.misfit);
  const isDone = (one) => asked(one).every((criterion) => isAnswered(labelOf(one.id, criterion.name)));

  function put(criterion, change) {
    const id = item().id;
    if (!Object.hasOwn(state.labels, id)) state.labels[id] = record();
    const before = state.labels[id][criterion.name] || { value: null, reason: "" };
    state.labels[id][criterion.name] = { ...before, ...change, time: new Date().toISOString() };
    keep();
    progress();
    const box = document.querySelectorAll("fieldset")[item().criteria.indexOf(criterion)];
    if (box) box.classList.toggle("answered", isAnswered(labelOf(id, criterion.name)));
  }

  // Files
  function lines() {
    const head = {
      format: FORMAT, kind: "labels", dataset: content.dataset, fingerprint: content.fingerprint,
      rater: state.rater, seed: content.seed,
    };
    const rows = [head];
    for (const one of content.items) {
      for (const criterion of one.criteria) {
        const label = labelOf(one.id, criterion.name);
        if (!isAnswered(label)) continue;
        const row = {
          item_id: one.id, criterion: criterion.name, rater: state.rater, value: label.value,
          time: label.time, sha256: one.sha256,
        };
        if (label.reason) row.reason = label.reason;
        rows.push(row);
      }
    }
    return rows.map((row) => JSON.stringify(row)).join("\n") + "\n";
  }
  function save() {
    const address = URL.createObjectURL(new Blob([lines()], { type: "application/x-ndjson" }));
    const name = `labels-${state.rater.replace(/[^\w.-]+/g, "_")}.jsonl`;
    const link = el("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    state.saved = true;
    progress();
  }
  function load(text) {
    let taken = 0, foreign = 0, unreadable = 0;
    for (const line of text.split("\n")) {
      if (!line.trim()) continue;
      let row;
      try {
        row = JSON.parse(line);
      } catch {
        unreadable += 1;
        continue;
      }
      if (row === null || typeof row !== "object") {
        unreadable += 1;
        continue;
      }
      if ("format" in row) continue;
      const one = content.items.find((known) => known.id === row.item_id);
      const known = one && one.criteria.some((criterion) => criterion.name === row.criterion);
      if (!known || row.rater !== state.rater || row.sha256 !== one.sha256) {
        foreign += 1;
        continue;
      }
      if (!Object.hasOwn(state.labels, one.id)) state.labels[one.id] = record();
      const before = state.labels[one.id][row.criterion];
      if (before && before.time > String(row.time)) continue;
      state.labels[one.id][row.criterion] = { value: row.value, reason: row.reason || "", time: String(row.time) };
      taken += 1;
    }
    keep();
    show();
    say(`Loaded ${taken} labels; skipped ${foreign} labels of another rater or dataset and ${unreadable} unreadable lines.`);
  }
  function say(text) {
    const place = document.getElementById("said");
    if (place) place.textContent = text;
  }

  // Forms: each gives its element and reads what was put in before.
  function choiceButtons(choices, chosen, onpick, numbered) {
    const buttons = choices.map((one, place) => {
      const on = JSON.stringify(one.code) === JSON.stringify(chosen);
      return el(
        "button",
        { type: "button", "aria-pressed": String(on), "data-code": JSON.stringify(one.code), onclick: () => onpick(one.code) },
        numbered && place < 9 ? el("kbd", {}, String(place + 1)) : null,
        one.label,
      );
    });
    return el("div", { class: "choices" }, buttons);
  }
  function mark(box, chosen) {
    for (const button of box.querySelectorAll("button[data-code]")) {
      button.setAttribute("aria-pressed", String(button.dataset.code === JSON.stringify(chosen)));
    }
  }
  function numberField(form, given, label, onput) {
    const range = form.min === null || form.max === null ? "" : `${form.min} – ${form.max}`;
    const field = el("input", {
      type: "number", step: form.whole ? "1" : "any", min: form.min, max: form.max, "aria-label": label,
      value: typeof given === "number" ? given : null, placeholder: range,
      oninput: (event) => onput(event.target.value !== "" && event.target.validity.valid ? event.target.valueAsNumber : null),
    });
    return el("div", { class: "choices" }, field, el("span", { class: "soft" }, range));
  }
  function textField(given, label, onput) {
    return el("div", { class: "field" }, el("label", {}, label,
      el("textarea", { rows: 3, oninput: (event) => onput(event.target.value) }, given || "")));
  }

  function build(form, given, onput, context) {
    if (form.kind === "choice") {
      const box = choiceButtons(form.choices, given, (code) => { mark(box, code); onput(code); }, context.numbered);
      return box;
    }
    if (form.kind === "number") return numberField(form, given, context.label, onput);
    if (form.kind === "compare") {
      const first = context.letters.indexOf("A");
      const sorted = [...form.choices].sort((a, b) => b.standing[first] - a.standing[first]);
      const choices = sorted.map((one) => ({ code: one.code, label: comparison(one, form.choices, context.letters) }));
      return build({ kind: "choice", choices }, given, onput, context);
    }
    if (form.kind === "ranking") return ranking(form.names, given, onput, context.letters);
    if (form.kind === "texts") {
      const held = record(form.bare ? { [form.keys[0]]: given } : given);
      return el("div", {}, form.keys.map((key) => textField(held[key], form.bare ? "" : key, (text) => {
        held[key] = text;
        const whole = form.keys.every((one) => (held[one] || "").trim());
        onput(!whole ? null : form.bare ? held[key] : { ...held });
      })));
    }
    if (form.kind === "parts") {
      const held = record(given);
      return el("div", {}, form.parts.map((part) => el("div", { class: "part" }, el("div", {}, part.title),
        build(part.form, held[part.key], (value) => {
          held[part.key] = value;
          const whole = form.parts.every((one) => held[one.key] !== null && held[one.key] !== undefined);
          onput(whole ? { ...held } : null);
        }, { ...context, label: part.title, numbered: false }))));
    }
    return textField(given === undefined || given === null ? "" : JSON.stringify(given), "JSON", (text) => {
      try {
        onput(JSON.parse(text));
      } catch {
        onput(null);
      }
    });
  }
  function comparison(one, choices, letters) {
    const best = Math.max(...one.standing);
    const ahead = one.standing.map((value, place) => (value === best ? letters[place] : null)).filter(Boolean);
    if (ahead.length === one.standing.length) return "Neither is better";
    const steps = typeof one.code === "number" && choices.length > 3 ? ` by ${Math.abs(one.code)}` : "";
    return `${ahead.join(" and ")} is ${one.standing.length > 2 ? "best" : "better"}${steps}`;
  }
  function ranking(names, given, onput, letters) {
    const places = record();
    (Array.isArray(given) ? given : []).forEach((group, at) => {
      for (const name of Array.isArray(group) ? group : [group]) places[name] = at + 1;
    });
    const order = names.map((_, place) => place).sort((a, b) => (letters[a] < letters[b] ? -1 : 1));
    return el("div", {}, order.map((place) => el("label", { class: "rank" }, `Candidate ${letters[place]}: place`,
      el("select", {
        onchange: (event) => {
          places[names[place]] = Number(event.target.value);
          if (!names.every((name) => places[name])) return onput(null);
          const used = [...new Set(Object.values(places))].sort((a, b) => a - b);
          return onput(used.map((at) => {
            const group = names.filter((name) => places[name] === at);
            return group.length === 1 ? group[0] : group;
          }));
        },
      }, el("option", { value: "0" }, "–"), names.map((_, at) =>
        el("option", { value: String(at + 1), selected: places[names[place]] === at + 1 }, String(at + 1)))))));
  }

  function criterionBox(criterion, place, letters) {
    const label = labelOf(item().id, criterion.name);
    const value = isAnswered(label) ? label.value : undefined;
    const head = [criterion.group ? `${criterion.group} › ` : "", criterion.name];
    const box = el("fieldset", { class: isAnswered(label) ? "answered" : null, tabindex: "-1" },
      el("legend", {}, head.join("")),
      criterion.requirement ? el("p", {}, criterion.requirement) : null,
      criterion.details ? el("p", { class: "details soft" }, criterion.details) : null,
      criterion.penalty ? el("p", { class: "warn" }, criterion.penalty) : null,
      criterion.when ? el("p", { class: "soft" }, `Counts only if ${criterion.when} is met.`) : null);
    box.addEventListener("focusin", () => select(place, false));
    if (criterion.misfit) {
      box.append(el("p", { class: "warn" }, criterion.misfit));
      return box;
    }
    const cannot = criterion.abstains
      ? el("button", { type: "button", "data-cannot": true, "aria-pressed": String(value === CANNOT) }, el("kbd", {}, "0"), "Cannot assess")
      : null;
    const holder = el("div", {});
    const fill = (given) => {
      holder.replaceChildren(build(criterion.form, given === CANNOT ? undefined : given, (found) => {
        if (cannot) cannot.setAttribute("aria-pressed", "false");
        put(criterion, { value: found });
      }, { label: criterion.name, letters, numbered: true }));
    };
    fill(value);
    if (cannot) {
      cannot.addEventListener("click", () => {
        const now = labelOf(item().id, criterion.name);
        const on = !(now && now.value === CANNOT);
        put(criterion, { value: on ? CANNOT : null });
        cannot.setAttribute("aria-pressed", String(on));
        fill(undefined);
      });
    }
    const note = el("details", { class: "note", open: Boolean(label && label.reason) }, el("summary", { class: "soft" }, "Reason"),
      el("textarea", { "aria-label": `Reason for ${criterion.name}`, oninput: (event) => put(criterion, { reason: event.target.value }) },
        label ? label.reason : ""));
    box.append(holder, cannot ? el("div", { class: "choices note" }, cannot) : "", note);
    return box;
  }

  function section(title, text) {
    return text ? [el("h2", {}, title), el("div", { class: "text" }, text)] : [];
  }
  function progress() {
    const bar = document.getElementById("progress");
    if (!bar) return;
    const done = content.items.filter(isDone).length;
    const all = content.items.flatMap((one) => asked(one).map((criterion) => labelOf(one.id, criterion.name)));
    const labelled = all.filter(isAnswered).length;
    bar.value = labelled;
    const kept = state.stored ? "" : " This browser cannot store your work: save the labels before you leave.";
    const place = `Item ${state.at + 1} of ${content.items.length}; ${done} done; ${labelled} of ${all.length} criteria labelled.`;
    document.getElementById("count").textContent = `${place}${state.saved ? "" : " Not saved to a file yet."}${kept}`;
    document.getElementById("short").textContent =
      `${state.at + 1}/${content.items.length} · ${labelled}/${all.length}${state.saved ? "" : " *"}`;
    document.getElementById("short").title = place;
  }

  // A button that narrow screens alone show, for what there is no room for next to the criteria.
  function toggle(id, label, controls, onchange) {
    const button = el("button", { type: "button", id, class: "narrow", "aria-controls": controls, "aria-expanded": "false" }, label);
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-expanded") !== "true";
      button.setAttribute("aria-expanded", String(on));
      onchange(on);
    });
    return button;
  }

  function show() {
    const one = item();
    const letters = [];
    shuffled(one.candidates.length, `candidates\n${one.id}`).forEach((place, at) => { letters[place] = letter(at); });
    const byLetter = one.candidates.map((candidate, place) => ({ text: candidate.text, letter: letters[place] }))
      .sort((a, b) => (a.letter < b.letter ? -1 : 1));
    const guidelines = content.guidelines[one.guidelines];
    const file = el("input", {
      type: "file", id: "file", accept: ".jsonl,.json,.txt", onchange: (event) => {
        const chosen = event.target.files[0];
        if (chosen) chosen.text().then(load);
      },
    });
    const n_criteria = content.items.reduce((sum, each) => sum + asked(each).length, 0);
    const columns = el("div", { class: "columns" });
    const text = toggle("text", "Text", "item", (on) => columns.classList.toggle("reading", on));
    const extras = el("div", { class: "extras", id: "extras" },
      el("button", { type: "button", id: "open", onclick: unfinished }, "Next unlabelled"),
      el("button", { type: "button", id: "save", onclick: save }, "Save labels"),
      el("label", { class: "button", for: "file" }, "Load labels"), file,
      el("button", { type: "button", id: "help", onclick: help }, "Keys"));
    const more = toggle("more", "More", "extras", (on) => extras.classList.toggle("shown", on));
    extras.addEventListener("click", () => {
      if (more.getAttribute("aria-expanded") === "true") more.click();
    });
    app.classList.add("labelling");
    app.replaceChildren(
      el("header", { class: "bar" },
        el("div", { class: "grow" }, el("h1", {}, content.title),
          el("progress", { id: "progress", max: n_criteria, "aria-label": "Criteria labelled" }),
          el("div", { class: "soft" }, el("span", { class: "wide" }, el("span", { id: "count" }), ` Rater: ${state.rater}.`),
            el("span", { class: "narrow", id: "short" })),
          el("div", { class: "soft", id: "said", role: "status" })),
        el("button", { type: "button", id: "previous", "aria-label": "Previous", onclick: () => go(-1) }, "←", el("span", { class: "wide" }, " Previous")),
        el("button", { type: "button", id: "next", class: "main", "aria-label": "Next", onclick: () => go(1) }, el("span", { class: "wide" }, "Next "), "→"),
        text, more, extras),
      columns);
    const wide = window.matchMedia("(min-width: 50.01rem)").matches;
    columns.replaceChildren(
        el("section", { "aria-label": "Item", id: "item", tabindex: "0" },
          guidelines ? el("details", { open: state.at === 0 && wide }, el("summary", {}, "Guidelines"), el("div", { class: "text" }, guidelines)) : "",
          section("Prompt", one.prompt), section("Author's reasoning", one.thinking),
          one.text === null && !byLetter.length ? el("p", { class: "warn" }, "This item has no text.") : section("Submission", one.text),
          byLetter.map((candidate) => section(`Candidate ${candidate.letter}`, candidate.text)),
          section("Reference", one.reference)),
        el("section", { "aria-label": "Criteria" }, one.criteria.map((criterion, place) => criterionBox(criterion, place, letters))));
    progress();
    const open = one.criteria.findIndex((criterion) => !criterion.misfit && !isAnswered(labelOf(one.id, criterion.name)));
    select(Math.max(open, 0), false);
  }
  function select(place, focus) {
    const boxes = document.querySelectorAll("fieldset");
    if (!boxes.length) return;
    state.current = Math.min(Math.max(place, 0), boxes.length - 1);
    boxes.forEach((box, at) => box.classList.toggle("current", at === state.current));
    if (focus) {
      boxes[state.current].focus({ preventScroll: true });
      boxes[state.current].scrollIntoView({ block: "nearest" });
    }
  }
  function go(step) {
    const to = state.at + step;
    if (to < 0 || to >= content.items.length) return say(step > 0 ? "This is the last item." : "This is the first item.");
    state.at = to;
    const saved = state.saved;
    keep();
    state.saved = saved;
    return show();
  }
  function unfinished() {
    const n = content.items.length;
    for (let step = 1; step <= n; step += 1) {
      const at = (state.at + step) % n;
      if (!isDone(content.items[state.order[at]])) return go(at - state.at);
    }
    return say("All items are labelled. Save the labels.");
  }

  const KEYS = [
    ["1 – 9", "choose an answer"], ["0", "cannot assess"], ["↓ ↑ or j k", "next, previous criterion"],
    ["→ ← or n p", "next, previous item"], ["u", "next item with an unlabelled criterion"], ["r", "enter a reason"],
    ["s", "save the labels to a file"], ["Esc", "leave a field"], ["?", "show these keys"],
  ];
  function help() {
    const box = el("dialog", { "aria-label": "Keys" },
      el("table", {}, KEYS.map(([key, words]) => el("tr", {}, el("td", {}, el("kbd", {}, key)), el("td", {}, words)))),
      el("form", { method: "dialog" }, el("button", { class: "main" }, "Close")));
    box.addEventListener("close", () => box.remove());
    document.body.append(box);
    box.showModal();
  }
  function pick(place) {
    const box = document.querySelectorAll("fieldset")[state.current];
    const buttons = box ? box.querySelectorAll(".choices button[data-code]") : [];
    const parted = item().criteria[state.current].form.kind === "parts";
    if (parted || !buttons[place]) return;
    buttons[place].click();
    select(state.current + 1, true);
  }
  document.addEventListener("keydown", (event) => {
    if (!state.rater || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog")) return;
    const typing = event.target.matches("input, textarea, select");
    if (typing) {
      if (event.key === "Escape") select(state.current, true);
      return;
    }
    const box = document.querySelectorAll("fieldset")[state.current];
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 };
    const moves = { ArrowRight: 1, n: 1, ArrowLeft: -1, p: -1 };
    if (/^[1-9]$/.test(event.key)) pick(Number(event.key) - 1);
    else if (event.key === "0" && box && box.querySelector("[data-cannot]")) {
      box.querySelector("[data-cannot]").click();
      select(state.current + 1, true);
    } else if (event.key in steps) select(state.current + steps[event.key], true);
    else if (event.key in moves) go(moves[event.key]);
    else if (event.key === "u") unfinished();
    else if (event.key === "s") save();
    else if (event.key === "r" && box && box.querySelector(".note textarea")) {
      box.querySelector("details").open = true;
      box.querySelector(".note textarea").focus();
    } else if (event.key === "?") help();
    else return;
    event.preventDefault();
  });
  window.addEventListener("beforeunload", (event) => {
    if (state.rater && !state.saved && !state.stored) event.preventDefault();
  });

  function begin(rater) {
    state.rater = rater;
    recall();
    state.order = shuffled(content.items.length, "items");
    state.saved = Object.keys(state.labels).length === 0;
    show();
  }
  function start() {
    const name = el("input", { id: "rater", name: "rater", required: true, autocomplete: "off", maxlength: 100, pattern: ".*\\S.*" });
    app.replaceChildren(el("form", {
      class: "start", onsubmit: (event) => {
        event.preventDefault();
        begin(name.value.trim());
      },
    },
    el("h1", {}, content.title),
    el("p", {}, `${content.items.length} items to label. Enter a name that identifies your labels. `
      + "To continue later, enter the same name in the same browser."),
    el("label", { for: "rater" }, "Your name as a rater"), name,
    el("button", { class: "main" }, "Begin"),
    el("p", { class: "soft" }, "No data leaves this page: save the labels to a file and send the file in.")));
    name.focus();
  }
  start();
})();
