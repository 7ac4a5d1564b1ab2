// Comparison of two models: samples that one solves and the other does not.

import { element, holding } from "./shared/dom.js";
import { plain } from "./shared/terminal.js";
import { changed, go, write } from "./address.js";
import { glyph } from "./glyphs.js";
import { bindPage } from "./keys.js";
import { isFinal, scoreOf } from "./outcomes.js";
import { askJson, cellAt, modelName, modelOf, modelSlug, on, state, trouble } from "./state.js";

const MOST = 500; // maximum number of list lines drawn
const AGAIN_MS = 5000;

function choice(label, onChange) {
  const select = element("select");
  select.setAttribute("aria-label", label);
  select.append(...state.run.models.map((_, id) => new Option(plain(modelName(id)), modelSlug(id))));
  select.addEventListener("change", () => onChange(select.value));
  return select;
}

/** A link to two samples side by side. */
function pairAddress(a, b, problem, sample) {
  const { id } = state.run.problems[problem];
  return write(["sample", modelSlug(a), id, String(sample)], { vs: [modelSlug(b), id, sample].map(encodeURIComponent).join("/") });
}

function line(a, b, [problem, sample]) {
  const link = holding("a", null, glyph(state.cells[cellAt(a, problem, sample)]), glyph(state.cells[cellAt(b, problem, sample)]), " ",
    element("bdi", plain(state.run.problems[problem].id)), element("span", ` sample ${sample}`, "muted"));
  link.href = pairAddress(a, b, problem, sample);
  return holding("li", null, link);
}

function list(title, a, b, found) {
  const items = holding("ol", "pairs", found.slice(0, MOST).map((one) => line(a, b, one)));
  const more = found.length > MOST ? element("p", `${(found.length - MOST).toLocaleString("en")} more; see the pages of the problems.`, "note") : null;
  return holding("section", null, element("h2", `${title} (${found.length.toLocaleString("en")})`), found.length ? items : element("p", "None so far.", "empty"), more);
}

/** The 2x2 table of samples with results from both models. */
function agreement(a, b) {
  let both = 0, right = 0, wrong = 0, onlyA = 0, onlyB = 0;
  const { problems, samples } = state.run;
  for (let index = 0; index < problems.length * samples; index += 1) {
    const [x, y] = [a, b].map((model) => state.cells[model * problems.length * samples + index]);
    if (!isFinal(x) || !isFinal(y)) continue;
    both += 1;
    const [p, q] = [scoreOf(x) === 1, scoreOf(y) === 1];
    if (p && q) right += 1;
    else if (p) onlyA += 1;
    else if (q) onlyB += 1;
    else wrong += 1;
  }
  return { both, right, wrong, onlyA, onlyB };
}

function counts(a, b) {
  const { both, right, wrong, onlyA, onlyB } = agreement(a, b);
  const share = (n) => (both ? `${n.toLocaleString("en")} (${((100 * n) / both).toFixed(0)} %)` : "–");
  const head = holding("tr", null, element("td"), element("th", "B passed all"), element("th", "B did not"));
  const rows = [["A passed all", right, onlyA], ["A did not", onlyB, wrong]].map(([name, x, y]) => holding("tr", null, element("th", name), element("td", share(x), "n"), element("td", share(y), "n")));
  return holding("table", "agreement", holding("caption", null, `${both.toLocaleString("en")} samples with results from both models`), holding("thead", null, head), holding("tbody", null, rows));
}

/** Open the page in `root`; return the function that draws an address. */
export function open(root, signal) {
  if (state.run.models.length < 2) {
    root.append(element("h1", "Compare"), element("p", "A comparison needs two models, but this run has one. Start astra view with two directories, or with a run of several models.", "empty"));
    return () => {};
  }
  const first = choice("Model A", (a) => go(changed({ a }), true));
  const second = choice("Model B", (b) => go(changed({ b }), true));
  const swap = element("button", "⇄");
  Object.assign(swap, { type: "button", title: "Swap sides (s)" });
  const body = element("div");
  let now = null, drawing = 0;
  const change = () => { if (now) go(changed({ a: modelSlug(now.b), b: modelSlug(now.a) }), true); };
  swap.addEventListener("click", change);
  root.append(holding("div", "page-head", element("h1", "Compare"), holding("label", null, "A ", first), swap, holding("label", null, "B ", second)), body);

  async function draw({ params }) {
    const mine = ++drawing;
    const a = modelOf(params.get("a") ?? "") ?? 0;
    const b = modelOf(params.get("b") ?? "") ?? (a === 0 ? 1 : 0);
    const { right_wrong: ab, wrong_right: ba } = await askJson(`api/compare?${new URLSearchParams({ a, b })}`);
    if (mine !== drawing || signal.aborted) return;
    now = { a, b, at: performance.now(), params };
    [first.value, second.value] = [modelSlug(a), modelSlug(b)];
    body.replaceChildren(counts(a, b), holding("div", "pair", list("A right, B wrong", a, b, ab), list("B right, A wrong", a, b, ba)));
  }

  on("cells", () => {
    if (now && performance.now() - now.at > AGAIN_MS) draw(now).catch((error) => trouble("page", error.message));
  }, signal);
  const walk = (by) => () => {
    const links = [...body.querySelectorAll(".pairs a")];
    links[Math.max(0, Math.min(links.length - 1, links.indexOf(document.activeElement) + by))]?.focus();
  };
  bindPage([
    ["j, k", "next, previous line", walk(1), walk(-1)],
    ["ArrowDown, ArrowUp", "next, previous line", walk(1), walk(-1)],
    ["s", "change sides", change],
  ], signal);
  return draw;
}
