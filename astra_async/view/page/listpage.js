// The samples that a filter leaves, as lines; only those on the screen are in the page.

import { element, holding } from "./shared/dom.js";
import { plain } from "./shared/terminal.js";
import { changed, go, read, write } from "./address.js";
import { CLASSES, filtered, filterOf } from "./filter.js";
import { ordered, SAMPLE_SORTS } from "./orders.js";
import { filterBar } from "./filterbar.js";
import { glyph } from "./glyphs.js";
import { shortened } from "./grid.js";
import { bindPage } from "./keys.js";
import { isFailing, isFinal, placeOf, STATES } from "./outcomes.js";
import { column, labels, modelName, modelSlug, on, placeOfCell, state } from "./state.js";

const ROW = 26; // CSS pixels, as in view.css
const OVERSCAN = 20;
const COLUMNS = ["failure", "passed", "repaired", "suspicious", "dropped", "cost", "seconds"];

function flags(index, columns, given) {
  const marks = [];
  if (columns.suspicious?.[index]) marks.push(element("span", "suspicious", "tag bad"));
  if (columns.repaired?.[index]) marks.push(element("span", "mended", "tag"));
  if (columns.dropped?.[index]) marks.push(element("span", "not applied", "tag"));
  if (given?.has(index)) marks.push(element("span", CLASSES[given.get(index)] ?? given.get(index), "tag label"));
  return marks;
}

/** A name as its column has room for it: on a phone its middle is left out. */
const named = (text) => (innerWidth > 640 ? plain(text) : shortened(plain(text), 12));

/** One line: what the sample is, how it came out, why, what is unusual, what it took. */
function line(index, columns, given, params) {
  const { model, problem, sample } = placeOfCell(index);
  const byte = state.cells[index];
  const { id, total } = state.run.problems[problem];
  const title = STATES[placeOf(byte)]?.title ?? "not planned";
  const kind = columns.failure && isFailing(byte) ? state.run.failures[columns.failure[index]] : null;
  const cost = columns.cost?.[index], seconds = columns.seconds?.[index];
  const link = holding("a", "row", glyph(byte, title),
    element("bdi", named(modelName(model)), "c-model"), element("bdi", named(id), "c-problem"), element("span", String(sample), "c-sample"),
    element("span", isFinal(byte) && columns.passed ? `${columns.passed[index]}/${total ?? "?"}` : "", "c-passed"),
    element("span", kind ? kind.replaceAll("_", " ") : isFinal(byte) ? "" : title, "c-why"), holding("span", "c-flags", flags(index, columns, given)),
    element("span", Number.isFinite(cost) && isFinal(byte) ? `$${cost.toFixed(3)}` : "", "c-cost"), element("span", seconds > 0 ? `${seconds.toFixed(1)} s` : "", "c-seconds"));
  link.href = write(["sample", modelSlug(model), id, String(sample)], { ...filterOf(params), from: "list", sort: params.get("sort") });
  return link;
}

function heading() {
  const names = [["", "c-state"], ["Model", "c-model"], ["Problem", "c-problem"], ["No.", "c-sample"], ["Passed", "c-passed"], ["Why", "c-why"], ["Record", "c-flags"], ["Cost", "c-cost"], ["Answer", "c-seconds"]];
  return holding("div", "row row-head", names.map(([name, className]) => element("span", name, className)));
}

/** Open the page in `root`; the answer draws an address. */
export function open(root, signal) {
  const bar = filterBar();
  const sort = element("select");
  sort.setAttribute("aria-label", "Order of the samples");
  sort.append(...Object.entries(SAMPLE_SORTS).map(([value, title]) => new Option(title, value)));
  sort.addEventListener("change", () => go(changed({ sort: sort.value === "problem" ? null : sort.value, at: null }), true));
  const view = element("div", null, "rows");
  const empty = element("p", null, "empty");
  root.append(holding("div", "page-head", element("h1", "Samples"), holding("label", "order", "Order ", sort)), bar.node, heading(), view, empty);
  let found = [], columns = {}, given = null, cursor = -1, drawing = 0;

  function paint() {
    const { params } = read();
    const top = -view.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(top / ROW) - OVERSCAN);
    const last = Math.min(found.length, Math.ceil((top + innerHeight) / ROW) + OVERSCAN);
    view.replaceChildren(...found.slice(first, last).map((index, place) => {
      const node = line(index, columns, given, params);
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
    empty.textContent = state.cells.length ? "No sample is left by this filter." : "The plan has no samples yet; they appear here as the run writes them.";
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
    ["PageDown, PageUp", "a page on, back", () => move(cursor + page()), () => move(cursor - page())],
    ["Home, End", "first, last line", () => move(0), () => move(found.length - 1)],
    ["n, N", "next, previous sample that did not pass all", failing(1), failing(-1)],
    ["Enter", "open the sample", () => view.querySelector("[aria-current]")?.click()],
  ], signal);
  return draw;
}
