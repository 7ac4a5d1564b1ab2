// The list of the runs in a folder. Each row links to the viewer of its run.

import { element, holding } from "./shared/dom.js";
import { sortAgain } from "./shared/sorting.js";
import { plain } from "./shared/terminal.js";
import { scrolling } from "./longtext.js";
import { percent } from "./numbers.js";
import { askJson, trouble } from "./state.js";
import { theme } from "./theme.js";

const AGAIN_MS = 5000;
const MOST_NAMED = 4; // models of a row
const HEADS = [["Run", ""], ["Date", ""], ["State", ""], ["Models", ""], ["Samples", "n"], ["Best score %", "n"], ["Cost", "n"]];

const cell = (text, value, label, className = "") => {
  const node = element("td", text, className);
  Object.assign(node.dataset, { v: value ?? "", label });
  return node;
};

function nameOf({ name, address }) {
  const text = element("bdi", plain(name));
  if (!address) return holding("td", null, text);
  const link = holding("a", null, text);
  link.href = address;
  return holding("td", null, link);
}

/** A run that cannot be read: its name and the reason. */
function broken(run) {
  const why = cell(plain(run.error), run.error, "reason", "why bad-text");
  return holding("tr", "broken", nameOf(run), cell("–", "", "date"), cell("cannot be read", "", "state"), why, ...["samples", "best score %", "cost"].map((label) => cell("–", "", label, "n")));
}

function row(run) {
  if (run.error) return broken(run);
  const { created_at: at, state, models, valid, planned, best, cost_usd: cost } = run;
  const more = models.length > MOST_NAMED ? ` and ${models.length - MOST_NAMED} more` : "";
  const names = plain(models.slice(0, MOST_NAMED).join(", ")) + more;
  const score = best ? cell(`${best.complete ? "" : "~"}${percent(best.score)}`, best.score, "best score %", "n") : cell("–", "", "best score %", "n");
  if (best) score.append(" ", element("span", plain(best.model), "muted"));
  return holding("tr", null, nameOf(run), cell(plain(at).slice(0, 16).replace("T", " "), at, "date"), cell(state, state, "state"), cell(names, names, "models", "why"),
    cell(`${valid.toLocaleString("en")}/${planned.toLocaleString("en")}`, valid, "samples", "n"), score,
    cell(cost === null ? "–" : `$${cost.toFixed(cost < 10 ? 3 : 2)}`, cost, "cost", "n"));
}

function table(runs) {
  const head = holding("tr", null, HEADS.map(([title, className]) => {
    const button = element("button", title);
    button.type = "button";
    const node = holding("th", className, button);
    node.scope = "col";
    return node;
  }));
  return holding("table", "data board runs", holding("thead", null, head), holding("tbody", null, runs.map(row)));
}

const list = element("div");
const note = "Dates are in UTC. The best score is the first row of the run's leaderboard; ~ means that samples are missing. The cost is the sum of the known costs of samples with a result.";

let shown = "";

async function show() {
  try {
    const { folder, runs } = await askJson("api/runs");
    document.getElementById("run-name").textContent = plain(folder);
    trouble("runs", null);
    const text = JSON.stringify(runs);
    if (text === shown) return; // a new table would take the focus from a link
    shown = text;
    const drawn = table(runs);
    const old = list.querySelector("th[aria-sort]");
    if (old) {
      drawn.tHead.rows[0].cells[old.cellIndex].setAttribute("aria-sort", old.getAttribute("aria-sort"));
      sortAgain(drawn);
    }
    list.replaceChildren(runs.length ? scrolling("Runs", drawn) : element("p", "This folder has no runs any more.", "empty"));
  } catch (error) {
    trouble("runs", error.message);
  } finally {
    setTimeout(show, AGAIN_MS);
  }
}

theme();
if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", location.pathname);
document.getElementById("main").replaceChildren(holding("div", "page", element("h1", "Runs"), list, element("p", note, "note")));
list.append(element("p", "Reading the runs …", "empty"));
show();
