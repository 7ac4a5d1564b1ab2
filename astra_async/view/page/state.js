// State of the run, updated by one event stream; pages read `state` and subscribe to changes.

const MOST_TRIES = 3; // retries of a request without any response
const TRY_AGAIN_MS = 300;
const AGAIN_MS = 2000; // minimum interval between updates of headline and columns
const bus = new EventTarget();

/** True during the first reading of the logs, when samples without a result may still have one. */
export const isLoading = () => state.run?.loading !== null && state.run?.loading !== undefined;

export const state = { run: null, cells: new Uint8Array(), live: null, link: "connecting", version: -1 };

/** Call `listener` on any of the events ("run", "cells", "live", "link") until `signal` aborts. */
export const on = (names, listener, signal) => names.split(" ").forEach((name) => bus.addEventListener(name, listener, { signal }));
const tell = (name) => bus.dispatchEvent(new Event(name));

// --- requests -----------------------------------------------------------------------------------------

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** Fetch JSON; throw the server's message on an error. */
export async function ask(path, options) {
  let response;
  for (let tries = 0; !response; tries += 1) {
    try {
      response = await fetch(path, options);
    } catch (cause) { // a network change may drop a request (see index.html)
      if (tries === MOST_TRIES) throw new Error("astra view does not answer: is it still running?", { cause });
      await pause(TRY_AGAIN_MS);
    }
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Error(said.error ?? `astra view answered ${response.status}`);
}

export const askJson = async (path, options) => (await ask(path, options)).json();

// --- message line at the top -------------------------------------------------------------------------

const troubles = new Map();

/** Show a message below the header; null removes the source's message. */
export function trouble(source, text) {
  if (text) troubles.set(source, text);
  else troubles.delete(source);
  const line = document.getElementById("trouble");
  const all = [...new Set(troubles.values())];
  line.textContent = all.join(" · ");
  line.hidden = all.length === 0;
}

// --- names and indices -------------------------------------------------------------------------------

export const size = () => ({ models: state.run.models.length, problems: state.run.problems.length, samples: state.run.samples });

export const cellAt = (model, problem, sample) => (model * state.run.problems.length + problem) * state.run.samples + sample;

export function placeOfCell(index) {
  const { problems, samples } = size();
  const row = Math.floor(index / samples);
  return { model: Math.floor(row / problems), problem: row % problems, sample: index % samples };
}

/** A model's display name, with the format if the run has several. */
export function modelName(id) {
  const model = state.run.models[id];
  if (!model) return `model ${id}`;
  const several = state.run.models.some(({ format }) => format !== model.format);
  return `${model.label ?? model.name}${several ? ` (${model.format})` : ""}`;
}

/** Name of a model in URLs; the shortest is used, all are accepted. */
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

// --- columns: one value per cell, fetched on demand ---------------------------------------------------

const KINDS = {
  passed: Uint16Array, cost: Float32Array, seconds: Float32Array, tests_s: Float32Array, tokens_in: Float32Array, tokens_out: Float32Array,
  repair: Uint32Array, suspicion: Uint32Array, score: Float64Array,
};
const columns = new Map();

/** Fetch a column; while the run grows, a cached one is used for two seconds. */
export function column(name) {
  const held = columns.get(name);
  if (held && (held.version === state.version || performance.now() - held.at < AGAIN_MS)) return held.values;
  const values = ask(`api/cells/${name}`).then(async (response) => new (KINDS[name] ?? Uint8Array)(await response.arrayBuffer()));
  columns.set(name, { values, version: state.version, at: performance.now() });
  values.catch(() => columns.delete(name));
  return values;
}

/** Labels by cell: `label` is the error class, `by` its source (`hand` or `judge:MODEL`). */
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

// --- following the run -------------------------------------------------------------------------------

let loading = null;
let waiting = []; // changes received while everything was fetched
let heard = -1; // latest version announced by the stream
let planned = null;

async function loadOnce() {
  const [run, response] = await Promise.all([askJson("api/run"), ask("api/cells")]);
  const cells = new Uint8Array(await response.arrayBuffer());
  if (cells.length !== run.models.length * run.problems.length * run.samples) return false; // the run grew between the two responses
  state.run = run;
  state.cells = cells;
  // The responses may have different versions; changes since the older one will follow.
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

/** Fetch the run and all cells; concurrent callers share one fetch. */
export function reload() {
  loading ??= load().catch((error) => {
    trouble("load", error.message);
    setTimeout(reload, AGAIN_MS);
  }).finally(() => {
    loading = null;
    if (state.run && heard > state.version) reload(); // it changed again during the fetch
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
      await reload(); // the run was resumed with a larger plan
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

/** Open the tab's only stream; reconnect forever, and show when it is disconnected. */
export function follow() {
  stream = new EventSource("api/stream");
  stream.addEventListener("open", () => { trouble("gone", null); trouble("load", null); });
  stream.addEventListener("change", ({ data }) => { changed(JSON.parse(data)); if (state.link !== "live") link("live"); });
  stream.addEventListener("live", ({ data }) => { state.live = JSON.parse(data); tell("live"); });
  stream.addEventListener("gone", ({ data }) => trouble("gone", JSON.parse(data).text));
  stream.addEventListener("error", () => {
    link("lost");
    if (stream.readyState === EventSource.CLOSED) { // rejected: the browser does not reconnect in this case
      setTimeout(follow, AGAIN_MS);
    }
  });
}

// A page in the back/forward cache must not keep a connection, because browsers allow six per server.
addEventListener("pagehide", () => stream?.close());
addEventListener("pageshow", ({ persisted }) => { if (persisted) { state.link = "lost"; follow(); } });

/** live.json of all directories, errors and events: fetched once, then updated by the stream. */
export async function fetchLive() {
  state.live = await askJson("api/live");
  tell("live");
}
