// Overview of the run: leaderboard, history, pools, costs, time, errors, events.

import { element, holding } from "./shared/dom.js";
import { sortAgain } from "./shared/sorting.js";
import { plain } from "./shared/terminal.js";
import { write } from "./address.js";
import { glyph, sparkline } from "./glyphs.js";
import { bindPage } from "./keys.js";
import { scrolling } from "./longtext.js";
import { sampleAddress } from "./mappage.js";
import { percent } from "./numbers.js";
import { countStates, plannedOf, STATES, WAITING } from "./outcomes.js";
import { askJson, column, isLoading, modelName, modelSlug, on, problemOf, state, trouble } from "./state.js";

const AGAIN_MS = 5000; // minimum interval between fetches of history and failures

const dollars = (value) => `$${value.toFixed(value < 10 ? 3 : 2)}`;

/** Format seconds in the two largest units. */
function duration(seconds) {
  if (seconds === null || seconds === undefined) return null;
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min` : `${Math.round(seconds)} s`;
}

// --- summary line -------------------------------------------------------------------------------------

function progress() {
  const counts = countStates(state.cells);
  const planned = plannedOf(counts);
  if (isLoading()) {
    const read = `${Math.round(100 * state.run.loading)} % of the logs are read; missing samples are known only at the end.`;
    return [holding("p", "standing-line", element("strong", `Loading: ${planned.toLocaleString("en")} samples planned`), element("span", read))];
  }
  const bar = holding("div", "progress", STATES.map(({ name, title }, place) => {
    const part = element("i", null, `part-${name}`);
    part.style.width = `${planned ? (100 * counts[place]) / planned : 0}%`;
    part.title = `${counts[place].toLocaleString("en")} ${title}`;
    return part;
  }));
  const legend = holding("div", "chips", STATES.map(({ name, title, byte }, place) => {
    const link = holding("a", "chip", glyph(byte), ` ${title} `, element("b", counts[place].toLocaleString("en")));
    link.href = write(["list"], { state: name });
    return link;
  }));
  const final = counts[0] + counts[1] + counts[2] + counts[3];
  const share = planned ? ` (${((100 * final) / planned).toFixed(final === planned ? 0 : 1)} %)` : "";
  return [holding("p", "standing-line", element("strong", `${final.toLocaleString("en")} of ${planned.toLocaleString("en")} samples graded${share}`), ...now()), bar, legend];
}

/** Current activity, from live.json; empty after the run's end. */
function now() {
  const runs = (state.live?.runs ?? []).filter((run) => run?.running);
  const sum = (pick) => runs.reduce((total, run) => total + (pick(run) ?? 0), 0);
  const spent = (state.live?.runs ?? []).flatMap((run) => Object.values(run?.models ?? {})).map((model) => model.spent_usd).filter((value) => value !== null && value !== undefined);
  const parts = runs.length ? [
    `${sum((run) => run.samples.asking)} being asked`, `${sum((run) => run.samples.grading)} being graded`,
    ...(sum((run) => run.containers.slots) ? [`${sum((run) => run.containers.busy)} of ${sum((run) => run.containers.slots)} containers busy, ${sum((run) => run.containers.ahead)} ready`] : []),
  ] : [];
  parts.push(...runs.flatMap((run) => run.doing ?? []).map(plain));
  if (spent.length) parts.push(`${dollars(spent.reduce((a, b) => a + b, 0))} spent`);
  if (runs.length && state.live.eta_s !== null && state.live.eta_s !== undefined) parts.push(`about ${duration(state.live.eta_s)} left`);
  if (runs.some((run) => run.stopping)) parts.push("stopping: finishing requests and tests in progress");
  return parts.map((text) => element("span", text));
}

// --- leaderboard ----------------------------------------------------------------------------------------

function track(row) {
  const node = element("span", null, "track");
  if (row.interval) {
    const range = element("i");
    range.style.left = `${100 * row.interval[0]}%`;
    range.style.width = `${100 * (row.interval[1] - row.interval[0])}%`;
    node.append(range);
  }
  if (row.mean_score !== null && row.mean_score !== undefined) {
    const mark = element("b");
    mark.style.left = `${100 * row.mean_score}%`;
    node.append(mark);
  }
  return node;
}

const cellOf = (text, value, label, className = "n") => {
  const cell = element("td", text, className);
  cell.dataset.v = value ?? "";
  cell.dataset.label = label;
  return cell;
};

function movement(row, history) {
  const cell = element("td", null, "move");
  const points = history.get(row.model) ?? [];
  if (points.length < 2) return cell;
  const all = [...history.values()].flat();
  const [low, high] = [Math.min(...all.map(([, v]) => v)), Math.max(...all.map(([, v]) => v))];
  const [from, to] = [Math.min(...all.map(([t]) => t)), Math.max(...all.map(([t]) => t))];
  const [first, last] = [points[0][1], points.at(-1)[1]];
  cell.append(sparkline(points, { from, to, low, high, title: `mean score from ${percent(first)} to ${percent(last)} % in ${duration(to - from)}` }));
  return cell;
}

function leaderRow(row, history) {
  const name = element("a");
  name.append(element("bdi", plain(modelName(row.model))));
  name.href = write(["map"], { m: modelSlug(row.model) });
  const interval = row.interval ? `${percent(row.interval[0])}–${percent(row.interval[1])}` : "–";
  const bar = holding("td", "range", track(row));
  bar.setAttribute("aria-hidden", "true");
  const about = (value, isKnown) => `${isKnown || value === null ? "" : "~"}${percent(value)}`;
  const after = afterTurns();
  return holding("tr", row.complete ? "" : "unsure", holding("td", null, name),
    cellOf(about(row.mean_score, row.complete), row.mean_score, "mean score %"),
    after ? cellOf(about(row.after_turns, row.complete && !row.turns_missing), row.after_turns, after.toLowerCase()) : null,
    cellOf(interval, row.interval ? (row.interval[0] + row.interval[1]) / 2 : "", "95 %"), bar, movement(row, history),
    cellOf(percent(row.pass_at_1), row.pass_at_1, "pass@1 %"), cellOf(row.median_sd === null || row.median_sd === undefined ? "–" : row.median_sd.toFixed(3), row.median_sd, "median SD"),
    cellOf(`${row.valid.toLocaleString("en")}/${row.planned.toLocaleString("en")}`, row.valid, "valid"));
}

/** Title of the column with the score after the last follow-up turn; null for runs without turns. */
const afterTurns = () => (state.run.turns ? `After ${state.run.turns} ${state.run.turns === 1 ? "turn" : "turns"} %` : null);
const heads = () => [["Model", ""], ["Mean score %", "n"], ...(afterTurns() ? [[afterTurns(), "n"]] : []), ["95 %", "n"], ["0 … 100 %", "range"], ["While it ran", "move"], ["Pass@1 %", "n"], ["Median SD", "n"], ["Valid", "n"]];

function leaderboard(history) {
  const head = holding("tr", null, heads().map(([title, className]) => {
    const sorts = className !== "range" && className !== "move";
    const button = element(sorts ? "button" : "span", title);
    if (sorts) button.type = "button";
    const cell = holding("th", className, button);
    cell.scope = "col";
    return cell;
  }));
  const rows = [...state.run.headline].sort((a, b) => (b.mean_score ?? -1) - (a.mean_score ?? -1)).map((row) => leaderRow(row, history));
  return holding("table", "data board", holding("thead", null, head), holding("tbody", null, rows));
}

// --- decisions of --until ---------------------------------------------------------------------------------

/** Pairs of models of each run: decided, open or inseparable; and the cost of the next round. */
function decided() {
  return state.run.deciding.map(({ words, pairs }) => {
    const head = holding("tr", null, ["Models", "State", "After k", "A − B, points", "Repeated interval", "In words"].map((name, place) => element("th", name, place > 1 && place < 5 ? "n" : "")));
    const rows = pairs.map((pair) => holding("tr", null, holding("td", null, element("bdi", plain(pair.models))), element("td", pair.state),
      cellOf(String(pair.k), pair.k, "after k"), cellOf(percent(pair.difference), pair.difference, "A − B, points"),
      cellOf(pair.interval ? `${percent(pair.interval[0])} to ${percent(pair.interval[1])}` : "–", "", "repeated interval"), holding("td", "why", element("bdi", plain(pair.sentence)))));
    const section = titledTable("Decided comparisons", holding("table", "data decided", holding("thead", null, head), holding("tbody", null, rows)));
    section.querySelector("h2").after(element("p", plain(words), "deciding-line"));
    return section;
  });
}

// --- pools, errors, failures, events ----------------------------------------------------------------------

function waitsFor({ paused_s: pausedS, paused_why: why, failed, waiting, waits_for: said }) {
  if (failed) return element("span", `ended: ${plain(failed)}`, "bad-text");
  if (pausedS > 0) return element("span", `paused ${duration(pausedS)}${why ? `: ${plain(why)}` : ""}`, "warn-text");
  return element("span", said ? plain(said) : waiting ? "its turn" : "nothing", "muted");
}

function pools() {
  const rows = (state.live?.runs ?? []).flatMap((run) => (run?.running ? Object.entries(run.models) : []));
  if (!rows.length) return null;
  const head = holding("tr", null, ["Model", "In flight", "Waiting", "A minute", "Spent", "Waits for"].map((name, place) => element("th", name, place && place < 5 ? "n" : "")));
  const body = rows.map(([name, pool]) => holding("tr", null, holding("td", null, element("bdi", plain(name))),
    cellOf(String(pool.in_flight), pool.in_flight, "in flight"), cellOf(String(pool.waiting), pool.waiting, "waiting"),
    cellOf(pool.per_minute === null ? "–" : pool.per_minute.toFixed(0), pool.per_minute, "a minute"),
    cellOf(pool.spent_usd === null || pool.spent_usd === undefined ? "–" : dollars(pool.spent_usd), pool.spent_usd, "spent"), holding("td", "why", waitsFor(pool))));
  return titledTable("Models and what they wait for", holding("table", "data pools", holding("thead", null, head), holding("tbody", null, body)));
}

const titledTable = (title, table) => holding("section", null, element("h2", title), scrolling(title, table));

function errors() {
  const found = state.live?.errors ?? [];
  if (!found.length) return null;
  const head = holding("tr", null, ["Trouble", "Model", "Count", "Said last"].map((name, place) => element("th", name, place === 2 ? "n" : "")));
  const rows = found.map(({ kind, model, count, last }) => holding("tr", null, element("td", String(kind).replaceAll("_", " ")), holding("td", null, element("bdi", modelText(model))), cellOf(count.toLocaleString("en"), count, "count"), holding("td", "why", element("bdi", plain(last ?? "")))));
  return titledTable("Errors and waits", holding("table", "data troubles", holding("thead", null, head), holding("tbody", null, rows)));
}

const modelText = (model) => (model === null || model === undefined ? "" : plain(typeof model === "number" ? modelName(model) : model));
const timeOf = (at) => String(at ?? "").slice(11, 19);

/** Failure kinds over all models; each links to its samples. */
function failures(kinds) {
  if (!kinds) return null;
  const counts = new Map();
  for (let index = 0; index < kinds.length; index += 1) if (state.cells[index] > 0 && state.cells[index] < WAITING) counts.set(kinds[index], (counts.get(kinds[index]) ?? 0) + 1);
  const rows = [...counts].filter(([kind]) => state.run.failures[kind]).sort(([, a], [, b]) => b - a).map(([kind, count]) => {
    const link = element("a", state.run.failures[kind].replaceAll("_", " "));
    link.href = write(["list"], { fail: state.run.failures[kind] });
    return holding("tr", null, holding("td", null, link), cellOf(count.toLocaleString("en"), count, "samples"));
  });
  if (!rows.length) return null;
  return titledTable("Why samples did not pass", holding("table", "data", holding("thead", null, holding("tr", null, element("th", "Kind"), element("th", "Samples", "n"))), holding("tbody", null, rows)));
}

/** Index of the model named in an event or error; null if two models share the name. */
function modelPlace(model) {
  if (typeof model === "number") return model;
  const found = state.run.models.flatMap(({ name }, id) => (name === model ? [id] : []));
  return found.length === 1 ? found[0] : null;
}

function eventLine({ at, text, model, problem, sample }) {
  const words = element("bdi", plain(text));
  const [known, place] = [modelPlace(model), typeof problem === "string" ? problemOf(problem) : null];
  const time = element("time", timeOf(at));
  if (known === null || place === null || !Number.isInteger(sample) || sample >= state.run.samples) return holding("li", null, time, " ", words);
  const link = holding("a", null, words);
  link.href = sampleAddress(known, place, sample);
  return holding("li", null, time, " ", link);
}

function events() {
  const found = state.live?.events ?? [];
  if (!found.length) return null;
  return holding("section", null, element("h2", "What happened"), scrolling("What happened", holding("ol", "events", [...found].reverse().map(eventLine))));
}

function emptyText() {
  if (state.run.headline.some(({ valid }) => valid)) return null;
  return state.run.state === "running" ? "No sample is graded yet. The leaderboard starts with the first one; the map shows samples in progress."
    : "No sample of this run was graded. To resume it, run the command that `astra status` shows; this page will update.";
}

/** Open the page in `root`; return the function that draws it. */
export function open(root, signal) {
  const whole = element("div", null, "whole");
  const board = scrolling("Leaderboard");
  const side = element("div", null, "columns");
  const empty = element("p", null, "empty");
  root.append(element("h1", "Overview"), whole, empty, board, side);
  let history = new Map(), kinds = null, asked = 0;

  async function fetchSlow() {
    if (asked && performance.now() - asked < AGAIN_MS) return;
    asked = performance.now();
    const [{ points }, failure] = await Promise.all([askJson("api/history"), column("failure")]);
    history = new Map();
    for (const { t, model, mean_score: score } of points) if (score !== null) history.set(model, [...(history.get(model) ?? []), [t, score]]);
    kinds = failure;
  }

  function paint() {
    const old = board.querySelector("th[aria-sort]");
    whole.replaceChildren(...progress());
    const table = leaderboard(history);
    if (old) {
      table.tHead.rows[0].cells[old.cellIndex].setAttribute("aria-sort", old.getAttribute("aria-sort"));
      sortAgain(table);
    }
    board.replaceChildren(table);
    side.replaceChildren(...[...decided(), pools(), failures(kinds), errors(), events()].filter(Boolean));
    empty.textContent = emptyText() ?? "";
    empty.hidden = !empty.textContent;
  }

  let planned = 0;
  const later = () => { planned ||= requestAnimationFrame(() => { planned = 0; paint(); }); };
  const slowly = () => fetchSlow().then(() => { if (!signal.aborted) later(); }, (error) => trouble("page", error.message));
  on("run live cells", later, signal);
  on("cells", slowly, signal);
  bindPage([["Enter", "to the map", () => { location.hash = write(["map"]); }]], signal);
  return () => { paint(); slowly(); };
}
