// Comparison of two models: the distribution of each model's samples, by problem.
//
// Samples are independent: sample 1 of one model does not belong to sample 1 of another model. Therefore only
// distributions and their means are compared.

import { element, holding } from "./shared/dom.js";
import { sortAgain } from "./shared/sorting.js";
import { plain } from "./shared/terminal.js";
import { changed, go, write } from "./address.js";
import { bars } from "./glyphs.js";
import { bindPage } from "./keys.js";
import { scrolling } from "./longtext.js";
import { isFinal } from "./outcomes.js";
import { sampleAddress } from "./mappage.js";
import { percent } from "./numbers.js";
import { cellAt, column, modelName, modelOf, modelSlug, on, state, trouble } from "./state.js";

const MOST = 500; // maximum number of problems drawn
const AGAIN_MS = 5000;
const EQUAL = 1e-9; // means that differ by less are equal

function choice(label, onChange) {
  const select = element("select");
  select.setAttribute("aria-label", label);
  select.append(...state.run.models.map((_, id) => new Option(plain(modelName(id)), modelSlug(id))));
  select.addEventListener("change", () => onChange(select.value));
  return select;
}

/** The graded samples of a model and problem, highest score first, with their mean and number of full passes. */
function samplesOf(scores, model, problem) {
  const at = (sample) => cellAt(model, problem, sample);
  const found = Array.from({ length: state.run.samples }, (_, sample) => ({ sample, byte: state.cells[at(sample)], score: scores[at(sample)] }))
    .filter(({ byte, score }) => isFinal(byte) && Number.isFinite(score)).sort((one, other) => other.score - one.score);
  const mean = found.length ? found.reduce((sum, { score }) => sum + score, 0) / found.length : null;
  return { found, mean, passed: found.filter(({ score }) => score === 1).length };
}

const differenceOf = (one, other) => (Math.abs(one - other) < EQUAL ? 0 : one - other);
const middle = ({ found }) => found[Math.floor(found.length / 2)]?.sample;

const cell = (text, value, label, className = "n") => {
  const node = element("td", text, className);
  Object.assign(node.dataset, { v: value ?? "", label });
  return node;
};

/** The sorted scores of one model's samples as bars; a link to the sample in the middle. */
function distribution(letter, model, problem, side) {
  const node = element("td", null, "bars");
  Object.assign(node.dataset, { v: side.mean ?? "", label: `${letter}: ${side.passed} of ${side.found.length} passed all` });
  if (!side.found.length) return node;
  const link = element("a");
  link.href = sampleAddress(model, problem, middle(side));
  const ends = [side.found.at(-1), side.found[0]].map(({ score }) => percent(score));
  link.title = `${plain(modelName(model))}: ${side.passed} of ${side.found.length} samples passed all tests, scores from ${ends[0]} to ${ends[1]} %; opens the sample in the middle`;
  link.setAttribute("aria-label", link.title);
  link.append(bars(side.found.map(({ byte }) => byte)));
  node.append(link);
  return node;
}

function line({ problem, a, b, one, other, difference }) {
  const { id } = state.run.problems[problem];
  const name = holding("a", null, element("bdi", plain(id)));
  name.href = write(["problem", id]);
  const both = element("a", "two samples");
  const vs = [modelSlug(b), id, middle(other)].map(encodeURIComponent).join("/");
  both.href = sampleAddress(a, problem, middle(one), { vs });
  both.setAttribute("aria-label", `two samples of ${plain(id)} side by side`);
  return holding("tr", null, holding("td", null, name), distribution("A", a, problem, one), cell(percent(one.mean), one.mean, "A mean %"),
    distribution("B", b, problem, other), cell(percent(other.mean), other.mean, "B mean %"),
    cell(`${difference > 0 ? "+" : ""}${percent(difference)}`, difference, "A − B, points"), holding("td", null, both));
}

const HEADS = [["Problem", ""], ["A: samples", ""], ["A mean %", "n"], ["B: samples", ""], ["B mean %", "n"], ["A − B, points", "n"]];

function byProblem(rows) {
  const head = holding("tr", null, HEADS.map(([title, className]) => {
    const button = element("button", title);
    button.type = "button";
    const cell = holding("th", className, button);
    cell.scope = "col";
    return cell;
  }), element("th", "Side by side"));
  const shown = [...rows].sort((x, y) => Math.abs(y.difference) - Math.abs(x.difference)).slice(0, MOST);
  return holding("table", "data board distributions", holding("thead", null, head), holding("tbody", null, shown.map(line)));
}

/** Both models over the problems with samples of both: full passes and the mean over problems. */
function totals(a, b, rows) {
  const of = (letter, model, pick) => {
    const sides = rows.map(pick);
    const [n, passed] = [sides.reduce((sum, { found }) => sum + found.length, 0), sides.reduce((sum, side) => sum + side.passed, 0)];
    const mean = sides.reduce((sum, side) => sum + side.mean, 0) / rows.length;
    const share = n ? `${passed.toLocaleString("en")} of ${n.toLocaleString("en")} (${((100 * passed) / n).toFixed(0)} %)` : "–";
    const name = holding("th", null, `${letter}  `, element("bdi", plain(modelName(model))));
    name.scope = "row";
    return holding("tr", null, name, element("td", share, "n"), element("td", percent(mean), "n"));
  };
  const head = holding("tr", null, element("td"), ...["Samples that passed all", "Mean score %"].map((title) => element("th", title)));
  return holding("table", "agreement", holding("thead", null, head), holding("tbody", null, of("A", a, ({ one }) => one), of("B", b, ({ other }) => other)));
}

function summary(rows) {
  const [higher, lower] = [rows.filter(({ difference }) => difference > 0).length, rows.filter(({ difference }) => difference < 0).length];
  const words = `A's mean is higher on ${higher.toLocaleString("en")} problems, B's on ${lower.toLocaleString("en")}, and equal on ${(rows.length - higher - lower).toLocaleString("en")}. `;
  const why = "Samples are independent, so each problem shows all samples of both models, sorted by score. ";
  return holding("p", "note", words, why, "For tests and intervals run ", element("code", "astra compare"), ".");
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
  let now = null;
  const change = () => { if (now) go(changed({ a: modelSlug(now.b), b: modelSlug(now.a) }), true); };
  swap.addEventListener("click", change);
  root.append(holding("div", "page-head", element("h1", "Compare"), holding("label", null, "A ", first), swap, holding("label", null, "B ", second)), body);

  async function draw({ params }) {
    const a = modelOf(params.get("a") ?? "") ?? 0;
    const b = modelOf(params.get("b") ?? "") ?? (a === 0 ? 1 : 0);
    const wanted = { a, b, at: performance.now(), params };
    now = wanted;
    [first.value, second.value] = [modelSlug(a), modelSlug(b)];
    const scores = await column("score");
    if (now !== wanted) return;
    const rows = state.run.problems.map((_, problem) => ({ problem, a, b, one: samplesOf(scores, a, problem), other: samplesOf(scores, b, problem) }))
      .filter(({ one, other }) => one.found.length && other.found.length).map((row) => ({ ...row, difference: differenceOf(row.one.mean, row.other.mean) }));
    if (!rows.length) {
      body.replaceChildren(element("p", "No problem has graded samples of both models yet.", "empty"));
      return;
    }
    const table = byProblem(rows);
    const old = body.querySelector("th[aria-sort]");
    if (old) {
      table.tHead.rows[0].cells[old.cellIndex].setAttribute("aria-sort", old.getAttribute("aria-sort"));
      sortAgain(table);
    }
    const more = rows.length > MOST ? element("p", `The ${MOST} problems with the largest differences are shown, of ${rows.length.toLocaleString("en")}.`, "note") : null;
    body.replaceChildren(...[totals(a, b, rows), summary(rows), scrolling("Samples by problem", table), more].filter(Boolean));
  }

  on("cells", () => {
    if (now && performance.now() - now.at > AGAIN_MS) draw(now).catch((error) => trouble("column", error.message));
  }, signal);
  const walk = (by) => () => {
    const links = [...body.querySelectorAll(".distributions td:first-child a")];
    links[Math.max(0, Math.min(links.length - 1, links.indexOf(document.activeElement) + by))]?.focus();
  };
  bindPage([
    ["j, k", "next, previous line", walk(1), walk(-1)],
    ["ArrowDown, ArrowUp", "next, previous line", walk(1), walk(-1)],
    ["s", "change sides", change],
  ], signal);
  return draw;
}
