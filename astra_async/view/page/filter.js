// Sample filters: parse a filter from the URL's parameters and compute a mask over the cells.

import { countStates, NOT_PLANNED, placeOf, STATES } from "./outcomes.js";
import { askJson, cellAt, column, labels, modelOf, size, state } from "./state.js";

const NAMES = ["m", "q", "skill", "state", "fail", "flag", "in", "test", "of", "label"];
const FLAGS = { repaired: "repaired", suspicious: "suspicious", dropped: "dropped" };
export const CLASSES = {
  user_interface: "User interface and presentation",
  logic: "Logical and implementation",
  data_handling: "Data handling and misuse",
  syntax: "Typos, syntax and misinterpretation",
};

/** The filter parameters, for links that keep the filter. */
export const filterOf = (params) => Object.fromEntries(NAMES.filter((name) => params.get(name)).map((name) => [name, params.get(name)]));
export const isFiltered = (params) => NAMES.some((name) => params.get(name));
export const listed = (params, name) => (params.get(name) ?? "").split(",").filter(Boolean);

/** Indices of the selected models; all if none is selected. */
export function chosenModels(params) {
  const named = (params.get("m") ?? "").split("|").filter(Boolean).map(modelOf).filter((id) => id !== null);
  return named.length ? named : state.run.models.map((_, id) => id);
}

/** Indices of the problems that match skill and text. */
export function chosenProblems(params) {
  const skill = params.get("skill");
  const words = (params.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return state.run.problems.flatMap(({ id, name, skill: main, sub_skills: others }, place) => {
    if (skill && skill !== main && !others.includes(skill)) return [];
    const text = [id, name, main, ...others].join(" ").toLowerCase();
    return words.every((word) => text.includes(word)) ? [place] : [];
  });
}

const searches = new Map(); // search results by query

async function search(question) {
  const held = searches.get(question);
  if (held && (held.version === state.version || performance.now() - held.at < 5000)) return held.found;
  const found = await askJson(`api/search?${question}`);
  if (searches.size > 20) searches.clear();
  searches.set(question, { found, version: state.version, at: performance.now() });
  return found;
}

async function searchMask(question) {
  const { cells, more } = await search(question);
  const found = new Uint8Array(state.cells.length);
  for (const [model, problem, sample] of cells) found[cellAt(model, problem, sample)] = 1;
  return { found, more };
}

async function tests(params) {
  const checks = [];
  let more = false;
  const add = ({ found, more: cut }) => { checks.push((index) => found[index]); more ||= cut; };
  if (params.get("in")) add(await searchMask(new URLSearchParams({ text: params.get("in"), in: "answers" })));
  if (params.get("test")) {
    add(await searchMask(new URLSearchParams({ test: params.get("test"), outcome: "failed", problem: params.get("of") ?? "" })));
  }
  const kinds = new Set(listed(params, "fail").map((name) => state.run.failures.findIndex((one) => (one ?? "") === name)));
  if (kinds.size) {
    const failure = await column("failure");
    checks.push((index) => kinds.has(failure[index]));
  }
  const flag = await flagCheck(params.get("flag") ?? "");
  if (flag) checks.push(flag);
  if (params.get("label")) checks.push(await labelCheck(params.get("label")));
  return { checks, more };
}

/** A flag, or one kind of it: "repaired", "repair:prose", "suspicion:reads_tests". */
async function flagCheck(flag) {
  if (FLAGS[flag]) {
    const values = await column(FLAGS[flag]);
    return (index) => values[index];
  }
  const [of, kind] = flag.split(/:(.*)/s); // a kind may contain a path
  const place = { repair: state.run.repairs, suspicion: state.run.suspicions }[of]?.indexOf(kind) ?? -1;
  if (place < 0) return null;
  const masks = await column(of);
  const bit = 1 << Math.min(place, 31); // kinds from the 32nd on share the last bit
  return (index) => masks[index] & bit;
}

async function labelCheck(wanted) {
  const given = await labels();
  if (wanted === "none") return (index) => !given.has(index);
  return (index) => (wanted === "any" ? given.has(index) : given.get(index)?.label === wanted);
}

/** Evaluate an address's filter: `mask` (null: everything), models and problems, `counts` by state with the
 * other parts of the filter applied, and `more` if a search was truncated. */
export async function filtered(params) {
  const chosen = { models: chosenModels(params), problems: chosenProblems(params) };
  if (!isFiltered(params)) return { ...chosen, mask: null, more: false, counts: countStates(state.cells) };
  const { checks, more } = await tests(params);
  const states = new Set(listed(params, "state").map((name) => STATES.findIndex((one) => one.name === name)));
  const { samples } = size();
  const mask = new Uint8Array(state.cells.length);
  const counts = new Array(STATES.length + 1).fill(0);
  for (const model of chosen.models) {
    for (const problem of chosen.problems) {
      const start = cellAt(model, problem, 0);
      for (let index = start; index < start + samples; index += 1) {
        if (state.cells[index] === NOT_PLANNED || !checks.every((check) => check(index))) continue;
        const place = placeOf(state.cells[index]);
        counts[place] += 1;
        if (!states.size || states.has(place)) mask[index] = 1;
      }
    }
  }
  return { ...chosen, mask, more, counts };
}
