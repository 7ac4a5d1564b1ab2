// The run as the server tells it, kept up to date by one stream; pages read `state` and listen.

const MOST_TRIES = 3; // further ones, of a question that got no answer at all
const TRY_AGAIN_MS = 300;
const AGAIN_MS = 2000; // headline and columns follow a growing run at most this often
const bus = new EventTarget();

/** Whether logs are still read for the first time: what has no result may have one. */
export const isLoading = () => state.run?.loading !== null && state.run?.loading !== undefined;

export const state = { run: null, cells: new Uint8Array(), live: null, link: "connecting", version: -1 };

/** Call `listener` when one of the names is told ("run", "cells", "live", "link"), until `signal` ends it. */
export const on = (names, listener, signal) => names.split(" ").forEach((name) => bus.addEventListener(name, listener, { signal }));
const tell = (name) => bus.dispatchEvent(new Event(name));

// --- questions ----------------------------------------------------------------------------------------

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** What the server answers; raises its own words where it refuses. */
export async function ask(path, options) {
  let response;
  for (let tries = 0; !response; tries += 1) {
    try {
      response = await fetch(path, options);
    } catch (cause) { // once is the machine's network, which may have changed in between (see index.html)
      if (tries === MOST_TRIES) throw new Error("astra view does not answer: is it still running?", { cause });
      await pause(TRY_AGAIN_MS);
    }
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Error(said.error ?? `astra view answered ${response.status}`);
}

export const askJson = async (path, options) => (await ask(path, options)).json();

// --- trouble: one line at the top --------------------------------------------------------------------

const troubles = new Map();

/** Show one line under the title; null takes back what the same source said before. */
export function trouble(source, text) {
  if (text) troubles.set(source, text);
  else troubles.delete(source);
  const line = document.getElementById("trouble");
  const all = [...new Set(troubles.values())];
  line.textContent = all.join(" · ");
  line.hidden = all.length === 0;
}

// --- names and places --------------------------------------------------------------------------------

export const size = () => ({ models: state.run.models.length, problems: state.run.problems.length, samples: state.run.samples });

export const cellAt = (model, problem, sample) => (model * state.run.problems.length + problem) * state.run.samples + sample;

export function placeOfCell(index) {
  const { problems, samples } = size();
  const row = Math.floor(index / samples);
  return { model: Math.floor(row / problems), problem: row % problems, sample: index % samples };
}

/** A model's name on the page; with its format where a run has several. */
export function modelName(id) {
  const model = state.run.models[id];
  if (!model) return `model ${id}`;
  const several = state.run.models.some(({ format }) => format !== model.format);
  return `${model.label ?? model.name}${several ? ` (${model.format})` : ""}`;
}

/** How a model stands in an address: shortest first, all are understood. */
const names = ({ label, name, format, directory }) => [label ?? name, `${label ?? name}~${format}`, name, `${name}~${format}`, `${name}~${format}~${directory}`];

export function modelSlug(id) {
  const { models } = state.run;
  return names(models[id]).find((text, kind) => models.filter((other) => names(other)[kind] === text).length === 1) ?? String(id);
}

export function modelOf(slug) {
  const { models } = state.run;
  for (const kind of names(models[0] ?? {}).keys()) {
    const found = models.findIndex((model) => names(model)[kind] === slug);
    if (found >= 0) return found;
  }
  return null;
}

export const problemOf = (id) => {
  const found = state.run.problems.findIndex((problem) => problem.id === id);
  return found < 0 ? null : found;
};

// --- columns: one value a cell, fetched when a filter or a list needs them ----------------------------

const KINDS = {
  passed: Uint16Array, cost: Float32Array, seconds: Float32Array, tests_s: Float32Array, tokens_in: Float32Array, tokens_out: Float32Array,
  repair: Uint32Array, suspicion: Uint32Array,
};
const columns = new Map();

/** A column by its name; an older one serves for two seconds while a run grows. */
export function column(name) {
  const held = columns.get(name);
  if (held && (held.version === state.version || performance.now() - held.at < AGAIN_MS)) return held.values;
  const values = ask(`api/cells/${name}`).then(async (response) => new (KINDS[name] ?? Uint8Array)(await response.arrayBuffer()));
  columns.set(name, { values, version: state.version, at: performance.now() });
  values.catch(() => columns.delete(name));
  return values;
}

/** The labels by cell: `label` is its class, `by` says who gave it, `hand` or `judge:MODEL`. */
export async function labels() {
  const held = columns.get("labels");
  if (held) return held;
  const { labels: given } = await askJson("api/labels");
  const byCell = new Map(given.map(([model, problem, sample, label, by]) => [cellAt(model, problem, sample), { label, by }]));
  columns.set("labels", byCell);
  return byCell;
}

export async function putLabel(model, problem, sample, label) {
  await ask("api/label", {
    method: "PUT",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ model, problem: state.run.problems[problem].id, sample, label }),
  });
  columns.delete("labels");
}

// --- following ---------------------------------------------------------------------------------------

let loading = null;
let waiting = []; // changes that came while everything was fetched
let heard = -1; // the version that the stream told of last
let planned = null;

async function loadOnce() {
  const [run, response] = await Promise.all([askJson("api/run"), ask("api/cells")]);
  const cells = new Uint8Array(await response.arrayBuffer());
  if (cells.length !== run.models.length * run.problems.length * run.samples) return false; // grew in between
  state.run = run;
  state.cells = cells;
  // The two answers may be of two versions: what has changed since the older one is still to come.
  state.version = Math.min(run.version, Number(response.headers.get("X-Version") ?? run.version));
  columns.delete("labels");
  return true;
}

async function load() {
  for (let tries = 0; tries < 5; tries += 1) if (await loadOnce()) break;
  const later = waiting.filter(({ version }) => version > state.version);
  waiting = [];
  later.forEach(apply);
  trouble("load", null);
  tell("run");
  tell("cells");
}

/** Fetch the run and all cells; calls that come meanwhile wait for the same. */
export function reload() {
  loading ??= load().catch((error) => {
    trouble("load", error.message);
    setTimeout(reload, AGAIN_MS);
  }).finally(() => {
    loading = null;
    if (state.run && heard > state.version) reload(); // it changed again meanwhile
  });
  return loading;
}

function apply({ version, cells, state: word }) {
  for (const [index, byte] of cells) if (index < state.cells.length) state.cells[index] = byte;
  state.version = version;
  if (word) state.run.state = word;
}

async function refreshHeadline() {
  planned = null;
  try {
    const run = await askJson("api/run");
    if (run.models.length * run.problems.length * run.samples !== state.cells.length) {
      await reload(); // resumed with more
      return;
    }
    state.run = run;
    tell("run");
  } catch (error) {
    trouble("load", error.message);
  }
}

function changed(message) {
  heard = message.version;
  if (message.cells === null) {
    if (message.version !== state.version || !state.run || state.link === "lost") reload();
    else if (message.state) state.run.state = message.state;
    return;
  }
  if (loading || !state.run) {
    waiting.push(message);
    return;
  }
  apply(message);
  tell("cells");
  planned ??= setTimeout(refreshHeadline, AGAIN_MS);
}

function link(word) {
  state.link = word;
  tell("link");
}

let stream = null;

/** Open the one stream of this tab; it is opened again for ever, and says when it is not there. */
export function follow() {
  stream = new EventSource("api/stream");
  stream.addEventListener("open", () => { trouble("gone", null); trouble("load", null); });
  stream.addEventListener("change", ({ data }) => { changed(JSON.parse(data)); if (state.link !== "live") link("live"); });
  stream.addEventListener("live", ({ data }) => { state.live = JSON.parse(data); tell("live"); });
  stream.addEventListener("gone", ({ data }) => trouble("gone", JSON.parse(data).text));
  stream.addEventListener("error", () => {
    link("lost");
    if (stream.readyState === EventSource.CLOSED) { // refused: the browser does not try again by itself
      setTimeout(follow, AGAIN_MS);
    }
  });
}

// A page that the browser keeps for the way back keeps no connection: there are six to a server.
addEventListener("pagehide", () => stream?.close());
addEventListener("pageshow", ({ persisted }) => { if (persisted) { state.link = "lost"; follow(); } });

/** live.json of every directory, errors and events: fetched once, then the stream has them. */
export async function fetchLive() {
  state.live = await askJson("api/live");
  tell("live");
}
