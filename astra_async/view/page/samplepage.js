// One sample, or two side by side.

import { element, holding } from "./shared/dom.js";
import { plain } from "./shared/terminal.js";
import { changed, go, read, write } from "./address.js";
import { CLASSES, filtered, filterOf, isFiltered } from "./filter.js";
import { glyph } from "./glyphs.js";
import { bindPage } from "./keys.js";
import { ordered, sortedProblems } from "./orders.js";
import { sampleAddress, sentence } from "./mappage.js";
import { byteOfSample, fetchSample, forget, testsOfBoth, turns, verdict, why, written } from "./onesample.js";
import { ALL, isFailing, NOT_PLANNED } from "./outcomes.js";
import { cellAt, modelName, modelOf, modelSlug, on, placeOfCell, problemOf, putLabel, size, state, trouble } from "./state.js";

/** Parse a sample from URL parts, or return null; hand-typed names may contain an unescaped slash. */
function placeOfParts(parts) {
  const sample = Number(parts.at(-1));
  if (!(sample >= 0 && sample < state.run.samples)) return null;
  for (let cut = 1; cut < parts.length - 1; cut += 1) {
    const place = { model: modelOf(parts.slice(0, cut).join("/")), problem: problemOf(parts.slice(cut, -1).join("/")), sample };
    if (place.model !== null && place.problem !== null) return place;
  }
  return null;
}

const indexOf = ({ model, problem, sample }) => cellAt(model, problem, sample);
const same = (a, b) => a && b && indexOf(a) === indexOf(b);

/** All filtered samples, in the order of the list or map that the user came from. */
async function reading(params) {
  const chosen = await filtered(params);
  const sort = params.get("sort");
  const listed = params.get("from") === "list";
  const problems = listed || !sort ? chosen.problems : sortedProblems(chosen.problems, chosen.models, sort);
  return (await ordered({ ...chosen, problems }, listed ? sort : null)).map(placeOfCell);
}

/** Next (or, with `by` -1, previous) sample after `from` that `wanted` accepts. */
function next(places, from, by, wanted = () => true) {
  let at = places.findIndex((place) => same(place, from));
  if (at < 0) at = by > 0 ? -1 : places.length; // the filter excludes this sample
  for (at += by; at >= 0 && at < places.length; at += by) if (wanted(places[at])) return places[at];
  return null;
}

const isPlanned = (place) => byteOfSample(place) !== NOT_PLANNED;
const failing = (place) => isFailing(byteOfSample(place));

/** A sample to compare with: one with another outcome on the same problem, else a neighbor. */
function opposite(place) {
  const { models, samples } = size();
  const wanted = (other) => !same(other, place) && isPlanned(other) && (failing(place) ? byteOfSample(other) === ALL : failing(other));
  const own = Array.from({ length: samples }, (_, sample) => ({ ...place, sample }));
  const others = Array.from({ length: models }, (_, model) => ({ ...place, model })).flatMap((one) => own.map(({ sample }) => ({ ...one, sample })));
  return own.find(wanted) ?? others.find(wanted) ?? [...own, ...others].find((other) => !same(other, place) && isPlanned(other)) ?? place;
}

const vsText = (place) => [modelSlug(place.model), state.run.problems[place.problem].id, place.sample].map(encodeURIComponent).join("/");

// --- parts of the page ------------------------------------------------------------------------------------

function strip(place, params) {
  const { samples } = size();
  const links = Array.from({ length: samples }, (_, sample) => sample).filter((sample) => isPlanned({ ...place, sample })).map((sample) => {
    const other = { ...place, sample };
    const link = holding("a", null, glyph(byteOfSample(other)));
    link.href = sampleAddress(place.model, place.problem, sample, params);
    link.title = sentence(place.model, place.problem, sample);
    link.setAttribute("aria-label", link.title);
    if (sample === place.sample) link.setAttribute("aria-current", "true");
    return link;
  });
  return holding("div", "strip", links);
}

function titleOf({ model, problem, sample }) {
  const name = element("a", plain(modelName(model)));
  name.href = write(["map"], { m: modelSlug(model) });
  const { id, name: title } = state.run.problems[problem];
  const task = holding("a", null, element("bdi", plain(id)));
  task.href = write(["problem", id]);
  task.title = plain(title ?? id);
  return holding("h1", null, name, element("i", " / "), task, element("i", " / "), `sample ${sample}`);
}

function labelBar(data, place, redraw) {
  const byHand = data.label_by === "hand";
  const buttons = Object.entries(CLASSES).map(([name, title], number) => {
    const button = holding("button", "chip", element("kbd", String(number + 1)), ` ${title}`);
    button.type = "button";
    const given = byHand && data.label === name;
    button.setAttribute("aria-pressed", String(given));
    button.addEventListener("click", () => give(place, given ? null : name, redraw));
    return button;
  });
  const judged = data.label && !byHand ? element("span", `${plain(data.label_by)} says: ${CLASSES[data.label] ?? data.label}`, "tag label judged") : null;
  return holding("div", "labels", element("span", "Label", "muted"), buttons, judged);
}

async function give(place, label, redraw) {
  try {
    await putLabel(place.model, place.problem, place.sample, label);
    trouble("label", null);
    forget();
    await redraw();
  } catch (error) {
    trouble("label", `The label was not written: ${error.message}`);
  }
}

function side(data, place, params, { signal, letter }) {
  return holding("section", "side", holding("h2", null, `${letter}  `, ...titleOf(place).childNodes), verdict(data, place), written(data, params, signal, `, ${letter}`), why(data, `, ${letter}`));
}

function pair(first, second, params, signal) {
  const columns = holding("div", "pair", side(...first, params, { signal, letter: "A" }), side(...second, params, { signal, letter: "B" }));
  return holding("div", null, testsOfBoth(first[0], second[0]), columns);
}

const WATCHED_MS = 2000;

/** Open the page in `root`; return the function that draws an address. */
export function open(root, signal) {
  let now = null; // the current sample, the second one (side by side), and the list
  let drawing = 0;
  let body = new AbortController();
  signal.addEventListener("abort", () => body.abort());

  const redraw = () => draw(read());
  const visit = (place) => {
    if (!place || same(place, now.place)) return;
    const { params } = read();
    const keep = new URLSearchParams(params);
    keep.delete("turn");
    const together = now.other && now.other.problem === now.place.problem && now.other.sample === now.place.sample;
    if (together) keep.set("vs", vsText({ ...now.other, problem: place.problem, sample: place.sample }));
    go(sampleAddress(place.model, place.problem, place.sample, keep));
  };
  const step = (by, wanted) => () => visit(next(now.list, now.place, by, wanted));
  const sideways = (by) => () => {
    const other = { ...now.place, sample: Math.max(0, Math.min(state.run.samples - 1, now.place.sample + by)) };
    visit(isPlanned(other) ? other : null);
  };
  const otherModel = (by) => () => {
    const { length } = state.run.models;
    const places = Array.from({ length }, (_, step) => ({ ...now.place, model: (now.place.model + by * (step + 1) + length * length) % length }));
    visit(places.find(isPlanned));
  };
  const leave = () => {
    const { params } = read();
    go(write([params.get("from") === "list" ? "list" : "map"], { ...filterOf(params), sort: params.get("sort"), at: now && vsText(now.place) }));
  };
  const toggle = () => go(changed({ vs: now.other ? null : vsText(opposite(now.place)) }));
  const label = (name) => () => give(now.place, name, redraw);

  function head(address) {
    const buttons = [["←", "Previous (k)", step(-1)], ["→", "Next (j)", step(1)], ["Next failing", "n", step(1, failing)], [now.other ? "One" : "Side by side", "x", toggle]].map(([text, title, work]) => {
      const button = element("button", text);
      Object.assign(button, { type: "button", title });
      button.addEventListener("click", work);
      return button;
    });
    const at = now.list.findIndex((place) => same(place, now.place)) + 1;
    const where = `${at ? at.toLocaleString("en") : "–"} of ${now.list.length.toLocaleString("en")}${isFiltered(address.params) ? " that the filter leaves" : ""}`;
    return holding("div", "page-head", now.other ? element("h1", "Side by side") : titleOf(now.place), holding("span", "steps", element("span", where, "count"), buttons));
  }

  /** Poll a sample without result until it has an answer or new steps in an agent's transcript. */
  async function grown(before, mine) {
    if (mine !== drawing || signal.aborted) return;
    forget();
    const data = await fetchSample(now.place);
    if (mine !== drawing || signal.aborted) return;
    if (data.answer || data.transcript.length !== before.transcript.length) await redraw();
    else setTimeout(() => grown(before, mine).catch((error) => trouble("page", error.message)), WATCHED_MS);
  }

  async function draw(address) {
    const mine = ++drawing;
    const place = placeOfParts(address.parts);
    if (!place) {
      root.replaceChildren(element("p", "This address names a model, a problem or a sample that is not in the run.", "empty"));
      return;
    }
    const other = address.params.get("vs") ? placeOfParts(address.params.get("vs").split("/").map(decodeURIComponent)) : null;
    const asked = [place, other].map((one) => one && fetchSample({ ...one, turn: one === place ? address.params.get("turn") ?? "" : "" }));
    const [list, data, second] = await Promise.all([reading(address.params), ...asked]);
    if (mine !== drawing || signal.aborted) return;
    body.abort();
    body = new AbortController();
    const moved = !now || !same(now.place, place);
    now = { place, other, list, bytes: [place, other].map((one) => one && byteOfSample(one)) };
    const content = other ? pair([data, place], [second, other], address.params, body.signal)
      : holding("div", "single", why(data), written(data, address.params, body.signal));
    const lines = other ? [] : [strip(place, address.params), verdict(data, place), turns(data, address.params), labelBar(data, place, redraw)];
    root.replaceChildren(...[head(address), ...lines, content].filter(Boolean));
    if (moved) scrollTo(0, 0);
    if (!data.answer && !data.result) setTimeout(() => grown(data, mine).catch((error) => trouble("page", error.message)), WATCHED_MS);
    const ahead = next(now.list, place, 1);
    if (ahead) setTimeout(() => { if (mine === drawing && !signal.aborted) fetchSample(ahead).catch(() => {}); }, 80);
  }

  on("cells", () => {
    if (now && [now.place, now.other].some((one, side) => one && byteOfSample(one) !== now.bytes[side])) redraw().catch((error) => trouble("page", error.message));
  }, signal);
  const tab = (name) => () => go(changed({ tab: name }));
  const bindings = [
    ["j, k", "next, previous sample that the filter leaves", step(1), step(-1)],
    ["ArrowRight, ArrowLeft", "next, previous sample of this model and problem", sideways(1), sideways(-1)],
    ["n, N", "next, previous sample that did not pass all", step(1, failing), step(-1, failing)],
    ["], [", "next, previous model on this problem and sample", otherModel(1), otherModel(-1)],
    ["x", "two samples side by side: this one and one that came out otherwise", toggle],
    ["d, t, a, p, r", "diff, an agent's transcript, answer, prompt, the record as JSON", tab(null), tab("transcript"), tab("answer"), tab("prompt"), tab("record")],
    ...Object.entries(CLASSES).map(([name, title], number) => [String(number + 1), `label: ${title}`, label(name)]),
    ["0", "take your label away; a judge's stays", label(null)],
  ].map(([keys, what, ...works]) => [keys, what, ...works.map((work) => () => { if (now) work(); })]);
  bindPage([...bindings, ["Escape", "back to the map or the list", leave]], signal);
  return draw;
}
