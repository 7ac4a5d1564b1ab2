// Sort orders of problems and samples, for map, list and keyboard navigation.

import { isFinal, NOT_PLANNED, scoreOf, spread } from "./outcomes.js";
import { cellAt, column, size, state } from "./state.js";

export const PROBLEM_SORTS = {
  planned: "as planned", hard: "hardest first", easy: "easiest first", varied: "most varied first",
  apart: "where models differ most", failing: "most without a verdict on tests first", name: "by name",
};

/** Sort keys of a problem over some models. */
function standing(problem, models) {
  const { samples } = size();
  const all = models.map((model) => spread(state.cells, cellAt(model, problem, 0), samples)).filter(({ mean }) => mean !== null);
  const means = all.map(({ mean }) => mean);
  const average = (values) => (values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null);
  return {
    problem,
    mean: average(means),
    sd: average(all.map(({ sd }) => sd)) ?? -1,
    apart: means.length ? Math.max(...means) - Math.min(...means) : -1,
    lost: all.reduce((sum, { lost }) => sum + lost, 0),
  };
}

export function sortedProblems(problems, models, sort) {
  const rows = problems.map((problem) => standing(problem, models));
  const name = ({ problem }) => state.run.problems[problem].id;
  const orders = {
    hard: (a, b) => (a.mean ?? 2) - (b.mean ?? 2), easy: (a, b) => (b.mean ?? -1) - (a.mean ?? -1),
    varied: (a, b) => b.sd - a.sd, apart: (a, b) => b.apart - a.apart, failing: (a, b) => b.lost - a.lost,
    name: (a, b) => name(a).localeCompare(name(b), "en", { numeric: true }),
  };
  return (orders[sort] ? rows.sort(orders[sort]) : rows).map(({ problem }) => problem);
}

export const SAMPLE_SORTS = {
  problem: "by problem", model: "by model", low: "lowest score first", high: "highest score first",
  cost: "most expensive first", slow: "slowest answers first",
};

/** Indices of the filtered cells, by problem or by one of SAMPLE_SORTS. */
export async function ordered({ models, problems, mask }, sort) {
  const found = [];
  for (const problem of problems) for (const model of models) for (let sample = 0; sample < state.run.samples; sample += 1) {
    const index = cellAt(model, problem, sample);
    if (state.cells[index] !== NOT_PLANNED && (!mask || mask[index])) found.push(index);
  }
  const score = (index) => (isFinal(state.cells[index]) ? scoreOf(state.cells[index]) : null);
  const most = (values) => (a, b) => (Number.isFinite(values[b]) ? values[b] : -1) - (Number.isFinite(values[a]) ? values[a] : -1);
  switch (sort) {
    case "model": return found.sort((a, b) => a - b);
    case "low": return found.sort((a, b) => (score(a) ?? 2) - (score(b) ?? 2));
    case "high": return found.sort((a, b) => (score(b) ?? -1) - (score(a) ?? -1));
    case "cost": return found.sort(most(await column("cost")));
    case "slow": return found.sort(most(await column("seconds")));
    default: return found;
  }
}
