// The map: problems by models, or problems by samples, on one screen.

import { element, holding } from "./shared/dom.js";
import { plain } from "./shared/terminal.js";
import { changed, go, read, write } from "./address.js";
import { filtered, filterOf } from "./filter.js";
import { filterBar } from "./filterbar.js";
import { Grid } from "./grid.js";
import { bindPage } from "./keys.js";
import { PROBLEM_SORTS, sortedProblems } from "./orders.js";
import { ALL, byteOf, isFinal, MISSING, NO_SOLUTION, NONE, NOT_PLANNED, scoreOf, UNDER_WAY, WAITING } from "./outcomes.js";
import { cellAt, column, modelName, modelSlug, on, size, state, trouble } from "./state.js";

/** Describe one sample in one sentence. */
export function sentence(model, problem, sample, failure = null) {
  const { id, total } = state.run.problems[problem];
  const byte = state.cells[cellAt(model, problem, sample)];
  const kind = failure ? state.run.failures[failure[cellAt(model, problem, sample)]] : null;
  const score = total === 1 ? `score ${Math.round(100 * scoreOf(byte))} %` : `${total ? `${Math.round(scoreOf(byte) * total)} of ${total} tests` : `${Math.round(100 * scoreOf(byte))} % of its tests`} passed`;
  const words = { [MISSING]: "missing", [UNDER_WAY]: "answered, being tested", [WAITING]: state.run.state === "running" ? "not answered yet" : "answered, not tested", [NOT_PLANNED]: "not planned", [NO_SOLUTION]: "no solution", [NONE]: "no test passed", [ALL]: "all tests passed" };
  return `${plain(modelName(model))} · ${plain(id)} · sample ${sample}: ${words[byte] ?? score}${kind && kind !== "tests_failed" ? ` (${kind.replaceAll("_", " ")})` : ""}`;
}

export const sampleAddress = (model, problem, sample, params = {}) => write(["sample", modelSlug(model), state.run.problems[problem].id, String(sample)], params);

function bySamples({ models, problems, mask }, params) {
  const { samples } = size();
  return {
    rows: problems.map((problem) => problemRow(problem)),
    groups: models.map((model) => ({ label: plain(modelName(model)), href: changed({ m: models.length === 1 ? null : modelSlug(model), at: null }) })),
    per: samples,
    byteAt: (row, group, k) => state.cells[cellAt(models[group], problems[row], k)],
    maskAt: mask && ((row, group, k) => mask[cellAt(models[group], problems[row], k)]),
    textAt: null,
    open: ({ row, group, k }) => go(sampleAddress(models[group], problems[row], k, { ...filterOf(params), sort: params.get("sort") })),
  };
}

function problemRow(problem) {
  const { id, name, skill } = state.run.problems[problem];
  return { label: plain(id), title: plain([id, name, skill].filter(Boolean).join(" · ")), href: write(["problem", id]) };
}

/** Means of the filtered samples, by problem and model. */
function means({ models, problems, mask }) {
  const { samples } = size();
  return problems.map((problem) => models.map((model) => {
    let n = 0, sum = 0, underWay = false;
    for (let index = cellAt(model, problem, 0), end = index + samples; index < end; index += 1) {
      if (mask && !mask[index]) continue;
      const byte = state.cells[index];
      underWay ||= byte === UNDER_WAY;
      if (isFinal(byte)) { n += 1; sum += scoreOf(byte); }
    }
    return { n, mean: n ? sum / n : null, underWay };
  }));
}

function byModels(chosen) {
  const table = means(chosen);
  const { models, problems } = chosen;
  return {
    table,
    rows: problems.map((problem) => problemRow(problem)),
    groups: models.map((model) => ({ label: plain(modelName(model)), href: changed({ by: "samples", m: modelSlug(model), at: null }) })),
    per: 1,
    byteAt: (row, group) => { const { mean, underWay } = table[row][group]; return mean === null ? (underWay ? UNDER_WAY : MISSING) : byteOf(mean); },
    maskAt: null,
    textAt: (row, group) => { const { mean } = table[row][group]; return mean === null ? null : (100 * mean).toFixed(0); },
    open: ({ row }) => go(write(["problem", state.run.problems[problems[row]].id])),
  };
}

function switcher(label, options) {
  const buttons = Object.entries(options).map(([value, title]) => {
    const button = element("button", title);
    button.type = "button";
    button.dataset.value = value;
    button.addEventListener("click", () => go(changed({ by: value === firstMode() ? null : value, at: null }), true));
    return button;
  });
  const node = holding("div", "switch", buttons);
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", label);
  const fill = (now) => buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.value === now)));
  return { node, fill };
}

/** With more samples, cells would be tiny, so means are the default view. */
const MOST_CELLS = 10_000;
const firstMode = () => (state.cells.length > MOST_CELLS ? "models" : "samples");

/** Open the page in `root`; return the function that draws an address. */
export function open(root, signal) {
  const bar = filterBar();
  const by = switcher("Columns", { samples: "Every sample", models: "Means by model" });
  const sort = element("select");
  sort.setAttribute("aria-label", "Order of the problems");
  sort.append(...Object.entries(PROBLEM_SORTS).map(([value, title]) => new Option(title, value)));
  sort.addEventListener("change", () => go(changed({ sort: sort.value === "planned" ? null : sort.value, at: null }), true));
  const summary = element("p", null, "note");
  let shown = null, failure = null, address = null, drawing = 0;
  const describe = ({ row, group, k }) => {
    if (!shown.table) return sentence(shown.models[group], shown.problems[row], k, failure);
    const { n, mean } = shown.table[row][group];
    const name = `${plain(modelName(shown.models[group]))} · ${plain(state.run.problems[shown.problems[row]].id)}`;
    return `${name}: ${mean === null ? "no result" : `mean score ${(100 * mean).toFixed(0)} % over ${n} samples`}`;
  };
  const follow = ({ row, group, k }) => {
    const at = [modelSlug(shown.models[group]), state.run.problems[shown.problems[row]].id, k].map(encodeURIComponent).join("/");
    history.replaceState(null, "", changed({ at }));
  };
  const grid = new Grid("Map of samples: rows are problems, columns are models. Arrow keys move, Enter opens.", { onOpen: (place) => shown.open(place), describe, onCursor: follow, signal });
  root.append(holding("div", "page-head", element("h1", "Map"), by.node, holding("label", "order", "Problems ", sort)), bar.node, grid.node, summary);
  const order = { key: "", problems: [] }; // kept while a run grows, so that rows do not move

  async function draw(now) {
    const mine = ++drawing;
    address = now;
    const chosen = await filtered(now.params);
    if (mine !== drawing || signal.aborted) return;
    const key = `${now.params.get("sort")}|${chosen.models}|${chosen.problems}`;
    if (order.key !== key) Object.assign(order, { key, problems: sortedProblems(chosen.problems, chosen.models, now.params.get("sort")) });
    const mode = now.params.get("by") ?? firstMode();
    const picture = mode === "models" ? byModels({ ...chosen, problems: order.problems }) : bySamples({ ...chosen, problems: order.problems }, now.params);
    shown = { ...picture, models: chosen.models, problems: order.problems };
    by.fill(mode);
    sort.value = now.params.get("sort") ?? "planned";
    bar.fill(now.params, chosen);
    grid.show({ ...picture, cursor: cursorOf(now.params.get("at"), shown) });
    const empty = chosen.problems.length === 0 ? "No problem matches this text and skill." : state.cells.length === 0 ? "The plan has no samples yet; they appear here as the run writes them." : "";
    summary.textContent = empty || `${order.problems.length} problems, ${chosen.models.length} models, ${samplesEach(chosen.models)} samples each. ${mode === "models" ? "A number is the mean score in %." : "The fill of a cell is the share of tests passed."} Names of problems lead to their tests, names of models to one model.`;
    column("failure").then((values) => { failure = values; }, (error) => trouble("column", error.message));
  }

  on("cells run", () => address && draw(read()), signal);
  const walk = (event) => { grid.focus(); grid.press(event); };
  bindPage([
    ["j, k", "next, previous problem", walk],
    ["ArrowLeft, ArrowRight, ArrowUp, ArrowDown", "move over the cells", walk],
    ["[, ]", "previous, next model", walk],
    ["n, N", "next, previous sample that did not pass all", walk],
    ["Enter", "open the sample", () => { if (grid.cursor) shown.open(grid.cursor); }],
    ["s", "next order of the problems", () => { sort.selectedIndex = (sort.selectedIndex + 1) % sort.length; sort.dispatchEvent(new Event("change")); }],
    ["v", "samples or means", () => by.node.querySelector("[aria-pressed=false]").click()],
  ], signal);
  return draw;
}

/** Number of samples per problem of the models: one number or a range. */
function samplesEach(models) {
  const found = models.map((model) => state.run.headline[model]?.k ?? state.run.samples).filter(Boolean);
  const [least, most] = [Math.min(...found), Math.max(...found)];
  return found.length && least !== most ? `${least} to ${most}` : String(found[0] ?? state.run.samples);
}

function cursorOf(at, { models, problems }) {
  if (!at) return null;
  const [slug, id, k] = at.split("/").map(decodeURIComponent);
  const group = models.findIndex((model) => modelSlug(model) === slug);
  const row = problems.findIndex((problem) => state.run.problems[problem].id === id);
  return group < 0 || row < 0 ? null : { row, group, k: Number(k) || 0 };
}
