// Filter bar above map and list: input changes the URL, and the URL updates the bar.

import { element, holding } from "./shared/dom.js";
import { plain } from "./shared/terminal.js";
import { changed, go } from "./address.js";
import { CLASSES, filterOf, isFiltered, listed } from "./filter.js";
import { glyph } from "./glyphs.js";
import { countStates, plannedOf, STATES } from "./outcomes.js";
import { modelName, modelOf, modelSlug, state } from "./state.js";

const FLAGS = { repaired: "answer was repaired", suspicious: "looks like tampering", dropped: "changes not applied" };
const LABELS = { any: "labelled", none: "not labelled", ...CLASSES };

const set = (changes) => go(changed({ ...changes, at: null }), true);

function field(type, placeholder, label) {
  const input = element("input");
  Object.assign(input, { type, placeholder, autocomplete: "off", spellcheck: false });
  input.setAttribute("aria-label", label);
  return input;
}

function choice(label, options, onChange) {
  const select = element("select");
  select.setAttribute("aria-label", label);
  select.append(new Option(label, ""), ...Object.entries(options).map(([value, title]) => new Option(title, value)));
  select.addEventListener("change", () => onChange(select.value));
  return select;
}

/** A collapsible list of model check boxes; `fill` updates it from the address. */
function modelChoice() {
  const summary = element("summary", "All models");
  const boxes = state.run.models.map((_, id) => {
    const box = element("input");
    box.type = "checkbox";
    box.value = modelSlug(id);
    return box;
  });
  const fold = holding("details", "pick", summary, holding("div", "pick-list", boxes.map((box, id) => holding("label", null, box, " ", element("bdi", plain(modelName(id)))))));
  fold.addEventListener("change", () => {
    const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
    set({ m: chosen.length === boxes.length ? null : chosen.join("|") });
  });
  const fill = (params) => {
    const chosen = new Set((params.get("m") ?? "").split("|").filter(Boolean).map(modelOf));
    boxes.forEach((box, id) => { box.checked = chosen.has(id); });
    summary.textContent = chosen.size === 1 ? plain(modelName([...chosen][0] ?? 0)) : chosen.size ? `${chosen.size} models` : "All models";
  };
  return { fold, fill };
}

/** The legend; its buttons select the states to show. */
function stateChips() {
  const chips = STATES.map(({ name, title, byte }) => {
    const count = element("b");
    const chip = holding("button", "chip", glyph(byte), ` ${title} `, count);
    chip.type = "button";
    chip.addEventListener("click", () => {
      const chosen = new Set(chips.filter(({ chip: other }) => other.getAttribute("aria-pressed") === "true").map((one) => one.name));
      if (!chosen.delete(name)) chosen.add(name);
      set({ state: [...chosen].join(",") });
    });
    return { name, chip, count };
  });
  const fill = (params, counts) => {
    const chosen = new Set(listed(params, "state"));
    chips.forEach(({ name, chip, count }, place) => {
      chip.setAttribute("aria-pressed", String(chosen.has(name)));
      count.textContent = counts[place].toLocaleString("en");
      chip.classList.toggle("empty", counts[place] === 0);
    });
  };
  return { node: holding("div", "chips", chips.map(({ chip }) => chip)), fill };
}

const kinds = (of, names, said) => Object.fromEntries(names.map((name) => [`${of}:${name}`, `${said}: ${plain(name)}`]));

function selects() {
  const skills = [...new Set(state.run.problems.flatMap(({ skill, sub_skills: others }) => [skill, ...others]))].filter(Boolean).sort();
  const failures = state.run.failures.filter(Boolean);
  const same = (names) => Object.fromEntries(names.map((name) => [name, plain(name)]));
  return {
    skill: choice("All skills", same(skills), (skill) => set({ skill })),
    fail: choice("Any failure", Object.fromEntries(failures.map((name) => [name, name.replaceAll("_", " ")])), (fail) => set({ fail })),
    flag: choice("Any record", { ...FLAGS, ...kinds("repair", state.run.repairs, "repaired"), ...kinds("suspicion", state.run.suspicions, "suspicious") }, (flag) => set({ flag })),
    label: choice("Any label", LABELS, (label) => set({ label })),
  };
}

/** Create the bar; `fill(params, {mask, counts, more})` updates it and shows the number of samples. */
export function filterBar() {
  const text = field("search", "Problem, skill …  ( / )", "Problems with this text");
  text.id = "filter-text";
  text.addEventListener("input", () => set({ q: text.value }));
  const inside = field("search", "Text in answers, Enter", "Samples whose answer has this text");
  inside.addEventListener("change", () => set({ in: inside.value }));
  const models = modelChoice();
  const chosen = selects();
  const chips = stateChips();
  const count = element("span", null, "count");
  count.setAttribute("role", "status");
  const test = element("span", null, "tag");
  const clear = element("button", "Clear", "quiet");
  clear.type = "button";
  clear.addEventListener("click", () => set(Object.fromEntries(Object.keys(filterOf(new URLSearchParams(location.hash.split("?")[1] ?? ""))).map((name) => [name, null]))));
  const node = holding("div", "filters", holding("div", "filter-line", text, models.fold, Object.values(chosen), inside, test, clear), chips.node);
  chips.node.append(count);

  const fill = (params, { mask, counts, more }) => {
    if (document.activeElement !== text) text.value = params.get("q") ?? "";
    if (document.activeElement !== inside) inside.value = params.get("in") ?? "";
    models.fill(params);
    for (const [name, select] of Object.entries(chosen)) {
      select.value = params.get(name) ?? "";
      select.classList.toggle("set", select.value !== "");
    }
    chips.fill(params, counts);
    clear.hidden = !isFiltered(params);
    test.hidden = !params.get("test");
    test.replaceChildren(...(params.get("test") ? ["fails: ", element("bdi", plain(params.get("test")))] : []));
    const planned = plannedOf(countStates(state.cells));
    const shown = mask ? mask.reduce((sum, value) => sum + value, 0) : planned;
    count.textContent = mask ? `${shown.toLocaleString("en")} of ${planned.toLocaleString("en")} samples${more ? " (search was cut)" : ""}` : `${shown.toLocaleString("en")} samples`;
  };
  return { node, fill };
}
