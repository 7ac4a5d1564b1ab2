// List of the filtered samples; only the visible lines are in the DOM.

import { element, holding } from "./shared/dom.js";
import { plain } from "./shared/terminal.js";
import { changed, go, read, write } from "./address.js";
import { CLASSES, filtered, filterOf } from "./filter.js";
import { ordered, SAMPLE_SORTS } from "./orders.js";
import { filterBar } from "./filterbar.js";
import { glyph } from "./glyphs.js";
import { shortened } from "./grid.js";
import { bindPage } from "./keys.js";
import { fileLink } from "./longtext.js";
import { isFailing, isFinal, placeOf, STATES } from "./outcomes.js";
import { column, labels, modelName, modelSlug, on, placeOfCell, state } from "./state.js";

const ROW = 26; // CSS pixels, as in view.css
const OVERSCAN = 20;
const COLUMNS = ["failure", "passed", "repaired", "suspicious", "dropped", "tokens_in", "tokens_out", "cost", "seconds", "tests_s"];

function flags(index, columns, given) {
  const marks = [];
  if (columns.suspicious?.[index]) marks.push(element("span", "suspicious", "tag bad"));
  if (columns.repaired?.[index]) marks.push(element("span", "repaired", "tag"));
  if (columns.dropped?.[index]) marks.push(element("span", "not applied", "tag"));
  if (given?.has(index)) {
    const { label, by } = given.get(index);
    const tag = element("span", CLASSES[label] ?? label, `tag label${by === "hand" ? "" : " judged"}`);
    if (by !== "hand") tag.title = `by ${plain(by)}`;
    marks.push(tag);
  }
  return marks;
}

/** Shorten a name to its column; on small screens the middle is omitted. */
const named = (text) => (innerWidth > 640 ? plain(text) : shortened(plain(text), 12));
const measured = (value, unit, digits = 1) => (Number.isFinite(value) && value > 0 ? `${value.toFixed(digits)}${unit}` : "");
const counted = (value) => (Number.isFinite(value) ? value.toLocaleString("en") : "");

/** Columns: title, grid width, minimum window width for automatic display, and a function that draws the cell. */
const PARTS = {
  model: ["Model", "minmax(0, 14rem)", 0, ({ place }) => element("bdi", named(modelName(place.model)), "c-model")],
  problem: ["Problem", "minmax(0, 16rem)", 0, ({ task }) => element("bdi", named(task.id), "c-problem")],
  sample: ["No.", "2.6rem", 0, ({ place }) => element("span", String(place.sample), "n")],
  passed: ["Passed", "4.2rem", 0, ({ byte, at, task }) => element("span", isFinal(byte) ? `${at("passed")}/${task.total ?? "?"}` : "", "n")],
  why: ["Why", "minmax(4rem, 9rem)", 640, ({ why }) => element("span", why, "c-why")],
  record: ["Record", "minmax(7rem, 1fr)", 640, ({ marks }) => holding("span", "c-flags", marks)],
  in: ["Tokens in", "5.2rem", 1100, ({ at }) => element("span", counted(at("tokens_in")), "n")],
  out: ["Tokens out", "5.4rem", 1000, ({ at }) => element("span", counted(at("tokens_out")), "n")],
  cost: ["Cost", "4.4rem", 1000, ({ byte, at }) => element("span", Number.isFinite(at("cost")) && isFinal(byte) ? `$${at("cost").toFixed(3)}` : "", "n")],
  answer: ["Answer", "4.4rem", 1000, ({ at }) => element("span", measured(at("seconds"), " s"), "n")],
  tests: ["Tests", "4.4rem", 1400, ({ at }) => element("span", measured(at("tests_s"), " s"), "n")],
};
const byItself = () => Object.keys(PARTS).filter((name) => innerWidth > PARTS[name][2]);
const partsOf = (params) => (params.get("cols") ? params.get("cols").split(",").filter((name) => PARTS[name]) : byItself());

/** Arguments for the cells of a line. */
function facts(index, columns, given) {
  const place = placeOfCell(index);
  const byte = state.cells[index];
  const kind = columns.failure && isFailing(byte) ? state.run.failures[columns.failure[index]] : null;
  const title = STATES[placeOf(byte)]?.title ?? "not planned";
  return {
    place, byte, title, task: state.run.problems[place.problem], at: (name) => columns[name]?.[index],
    why: kind ? kind.replaceAll("_", " ") : isFinal(byte) ? "" : title, marks: flags(index, columns, given),
  };
}

/** Draw a line: sample, outcome, reason, flags, and costs. */
function line(index, columns, given, params, parts) {
  const known = facts(index, columns, given);
  const link = holding("a", "row", glyph(known.byte, known.title), parts.map((name) => PARTS[name][3](known)));
  link.href = write(["sample", modelSlug(known.place.model), known.task.id, String(known.place.sample)], { ...filterOf(params), from: "list", sort: params.get("sort") });
  return link;
}

/** A collapsible list of column check boxes; the selection is in the URL. */
function chooser() {
  const boxes = Object.entries(PARTS).map(([name, [title]]) => {
    const box = element("input");
    Object.assign(box, { type: "checkbox", value: name });
    return [box, holding("label", null, box, ` ${title}`)];
  });
  const fold = holding("details", "pick", element("summary", "Columns"), holding("div", "pick-list", boxes.map(([, label]) => label)));
  fold.addEventListener("change", () => {
    const chosen = boxes.filter(([box]) => box.checked).map(([box]) => box.value);
    go(changed({ cols: chosen.join() === byItself().join() ? null : chosen.join() }), true);
  });
  const fill = (parts) => boxes.forEach(([box]) => { box.checked = parts.includes(box.value); });
  return { fold, fill };
}

const quoted = (value) => (/[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));

/** Export the lines as CSV, with all columns. */
function table(found, columns, given) {
  const measures = ["passed", "tokens_in", "tokens_out", "cost", "seconds", "tests_s"];
  const head = ["model", "format", "problem", "sample", "state", "failure", "total", ...measures, "label", "label_by"];
  const rows = found.map((index) => {
    const { place, title, task, why, byte } = facts(index, columns, null);
    const { name, format } = state.run.models[place.model];
    const { label = "", by = "" } = given?.get(index) ?? {};
    const values = measures.map((measure) => (isFinal(byte) && Number.isFinite(columns[measure]?.[index]) ? columns[measure][index] : ""));
    return [name, format, task.id, place.sample, title, isFailing(byte) ? why.replaceAll(" ", "_") : "", task.total ?? "", ...values, label, by];
  });
  return [head, ...rows].map((row) => row.map(quoted).join(",")).join("\n").concat("\n");
}

/** Open the page in `root`; return the function that draws an address. */
export function open(root, signal) {
  const bar = filterBar();
  const sort = element("select");
  sort.setAttribute("aria-label", "Order of the samples");
  sort.append(...Object.entries(SAMPLE_SORTS).map(([value, title]) => new Option(title, value)));
  sort.addEventListener("change", () => go(changed({ sort: sort.value === "problem" ? null : sort.value, at: null }), true));
  const view = element("div", null, "rows");
  const empty = element("p", null, "empty");
  const head = element("div", null, "row row-head");
  const choice = chooser();
  const file = fileLink("CSV", "samples.csv", () => table(found, columns, given), "text/csv");
  file.title = "Download the filtered samples";
  root.append(holding("div", "page-head", element("h1", "Samples"), holding("label", "order", "Order ", sort), choice.fold, file), bar.node, head, view, empty);
  let found = [], columns = {}, given = null, cursor = -1, drawing = 0, parts = [];

  function paint() {
    const { params } = read();
    if (partsOf(params).join() !== parts.join() || !head.childElementCount) {
      parts = partsOf(params);
      choice.fill(parts);
      root.style.setProperty("--row", `1.4rem ${parts.map((name) => PARTS[name][1]).join(" ")}`);
      head.replaceChildren(...["", ...parts].map((name) => element("span", name && PARTS[name][0], PARTS[name]?.[1].includes("minmax") ?? true ? "" : "n")));
    }
    const top = -view.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(top / ROW) - OVERSCAN);
    const last = Math.min(found.length, Math.ceil((top + innerHeight) / ROW) + OVERSCAN);
    view.replaceChildren(...found.slice(first, last).map((index, place) => {
      const node = line(index, columns, given, params, parts);
      node.style.top = `${(first + place) * ROW}px`;
      if (first + place === cursor) node.setAttribute("aria-current", "true");
      return node;
    }));
  }

  const atText = (index) => { const { model, problem, sample } = placeOfCell(index); return [modelSlug(model), state.run.problems[problem].id, sample].map(encodeURIComponent).join("/"); };

  function move(place) {
    if (!found.length) return;
    cursor = Math.max(0, Math.min(found.length - 1, place));
    const y = view.getBoundingClientRect().top + cursor * ROW;
    const over = document.getElementById("top").getBoundingClientRect().bottom + ROW + 8;
    if (y < over) scrollBy(0, y - over);
    else if (y + ROW > innerHeight - 8) scrollBy(0, y + ROW - innerHeight + 8);
    history.replaceState(null, "", changed({ at: atText(found[cursor]) }));
    paint();
    view.querySelector("[aria-current]")?.focus({ preventScroll: true });
  }

  async function draw(now) {
    const mine = ++drawing;
    const [chosen, held, ...values] = await Promise.all([filtered(now.params), labels(), ...COLUMNS.map(column)]);
    if (mine !== drawing || signal.aborted) return;
    columns = Object.fromEntries(COLUMNS.map((name, place) => [name, values[place]]));
    given = held;
    found = await ordered(chosen, now.params.get("sort"));
    sort.value = now.params.get("sort") ?? "problem";
    if (!sort.value) sort.value = "problem";
    bar.fill(now.params, chosen);
    cursor = now.params.get("at") ? found.findIndex((index) => atText(index) === now.params.get("at")) : -1;
    view.style.height = `${found.length * ROW}px`;
    empty.hidden = found.length > 0;
    empty.textContent = state.cells.length ? "No sample matches this filter." : "The plan has no samples yet; they appear here as the run writes them.";
    paint();
    if (cursor >= 0 && view.contains(document.activeElement) === false) move(cursor);
  }

  let asked = 0;
  addEventListener("scroll", () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(paint); }, { signal, passive: true });
  addEventListener("resize", paint, { signal });
  on("cells", () => draw(read()).catch(() => {}), signal);
  const failing = (by) => () => { for (let at = cursor + by; at >= 0 && at < found.length; at += by) if (isFailing(state.cells[found[at]])) return move(at); return null; };
  const page = () => Math.floor(innerHeight / ROW) - 4;
  bindPage([
    ["j, k", "next, previous line", () => move(cursor + 1), () => move(cursor - 1)],
    ["ArrowDown, ArrowUp", "next, previous line", () => move(cursor + 1), () => move(cursor - 1)],
    ["PageDown, PageUp", "next, previous page", () => move(cursor + page()), () => move(cursor - page())],
    ["Home, End", "first, last line", () => move(0), () => move(found.length - 1)],
    ["n, N", "next, previous sample that did not pass all", failing(1), failing(-1)],
    ["Enter", "open the sample", () => view.querySelector("[aria-current]")?.click()],
  ], signal);
  return draw;
}
