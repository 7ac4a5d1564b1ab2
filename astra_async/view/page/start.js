// Opens the page named by the URL, and follows the run.

import { element } from "./shared/dom.js";
import "./shared/sorting.js";
import { go, read, write } from "./address.js";
import { bindEverywhere, showHelp } from "./keys.js";
import { fetchLive, follow, isLoading, on, reload, state, trouble } from "./state.js";
import { theme } from "./theme.js";
import * as comparePage from "./comparepage.js";
import * as listPage from "./listpage.js";
import * as mapPage from "./mappage.js";
import * as overviewPage from "./overviewpage.js";
import * as problemPage from "./problempage.js";
import * as samplePage from "./samplepage.js";

const PAGES = {
  overview: [overviewPage, "Overview"], map: [mapPage, "Map"], list: [listPage, "Samples"],
  problem: [problemPage, "Tests"], compare: [comparePage, "Compare"], sample: [samplePage, "Sample"],
};
const WORDS = { running: "running", finished: "finished", stopped: "stopped", unknown: "state unknown" };

const main = document.getElementById("main");
let shown = { page: null, draw: null, end: null };

/** The names of the run directories. */
function runNames() {
  return state.run.directories.map((path) => path.split("/").filter(Boolean).pop() ?? path).join(", ");
}

async function show() {
  if (!state.run) return;
  const address = read();
  const [page, title] = PAGES[address.page] ?? PAGES.overview;
  if (shown.page !== page) {
    shown.end?.abort();
    const end = new AbortController();
    const root = element("div", null, `page ${title.toLowerCase()}`);
    main.replaceChildren(root);
    scrollTo(0, 0);
    shown = { page, end, draw: page.open(root, end.signal) };
  }
  document.title = `${[title, ...address.parts].join(" · ")} · ${runNames()} · astra view`;
  for (const link of document.querySelectorAll("#top nav a")) {
    if (PAGES[link.dataset.page][0] === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    await shown.draw(address);
    trouble("page", null);
  } catch (error) {
    trouble("page", error.message);
  }
}

function showState() {
  const { run, link } = state;
  const mark = document.getElementById("run-state");
  if (run) {
    mark.textContent = isLoading() ? "loading" : WORDS[run.state] ?? run.state;
    mark.className = `state ${isLoading() ? "loading" : run.state}`;
    const name = document.getElementById("run-name");
    name.textContent = runNames();
    name.title = run.directories.join("\n");
    const loading = run.loading === null || run.loading === undefined ? null : `The logs are being read: ${Math.round(100 * run.loading)} %.`;
    trouble("loading", loading);
    trouble("warnings", run.warnings.join(" · ") || null);
  }
  const line = document.getElementById("link-state");
  line.textContent = { live: "", connecting: "connecting …", lost: "connection lost, trying again …" }[link];
  line.className = link;
}

const nextTheme = theme();
bindEverywhere([
  ["?", "this sheet", showHelp],
  ["/", "type a filter", () => {
    const field = document.getElementById("filter-text");
    if (field) field.focus();
    else { go(write(["map"])); setTimeout(() => document.getElementById("filter-text")?.focus(), 50); }
  }],
  ["g o", "go to the overview", () => go("#/")],
  ["g m", "go to the map", () => go(write(["map"]))],
  ["g l", "go to the list of samples", () => go(write(["list"]))],
  ["g t", "go to the tests", () => go(write(["problem"]))],
  ["g c", "go to comparing two models", () => go(write(["compare"]))],
  ["y", "copy the address of this view", () => navigator.clipboard?.writeText(location.href)],
  ["T", "colours: the system's, light, dark", nextTheme],
]);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); (main.querySelector("canvas") ?? main).focus(); }); // without changing the URL
document.getElementById("help-open").addEventListener("click", showHelp);

// The token is now in a cookie; remove it from the URL, which may be shared.
if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", location.pathname + location.hash);

// The viewer of a run in a folder has the address run/NAME/ below the list of runs.
if (/\/run\/[^/]+\/$/.test(location.pathname)) {
  const link = element("a", "All runs");
  Object.assign(link, { href: "../../", id: "all-runs" });
  document.getElementById("home").after(link);
}

addEventListener("hashchange", show);
on("run", () => { showState(); if (!shown.page) show(); });
on("link cells", showState);
main.replaceChildren(element("p", "Reading the run …", "empty"));
follow();
reload();
fetchLive().catch(() => {}); // the stream delivers it later
