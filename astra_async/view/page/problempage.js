// One problem: samples and tests by model; tests that no sample or every sample passes.

import { element, holding } from "./shared/dom.js";
import { sortAgain } from "./shared/sorting.js";
import { plain } from "./shared/terminal.js";
import { changed, go, read, write } from "./address.js";
import { Grid } from "./grid.js";
import { bindPage } from "./keys.js";
import { scrolling } from "./longtext.js";
import { sampleAddress, sentence } from "./mappage.js";
import { spread } from "./outcomes.js";
import { askJson, cellAt, modelName, modelSlug, on, problemOf, state, trouble } from "./state.js";

const AGAIN_MS = 5000; // minimum interval between fetches of the tests
const NOTES = { none: "no sample passes", all: "every sample passes", untouched: "passes untouched" };
const SHOWN = { "": "All tests", none: "No sample passes", all: "Every sample passes", some: "Some pass" };

const percent = (share) => (share === null || share === undefined ? "–" : (100 * share).toFixed(0));
const step = (share) => (share <= 0 ? 0 : share >= 1 ? 5 : 1 + Math.min(3, Math.floor(4 * share)));

function shareCell(share, href = null) {
  const cell = element("td", null, share === null ? "n heat none" : `n heat heat-${step(share)}`);
  cell.dataset.v = share ?? "";
  if (!href) cell.textContent = percent(share);
  else {
    const link = element("a", percent(share));
    link.href = href;
    cell.append(link);
  }
  return cell;
}

function testRow({ name, passed, all, note }, problem) {
  const failed = (model) => write(["list"], { m: modelSlug(model), test: name, of: problem.id, q: problem.id });
  const title = element("a", null);
  title.append(element("bdi", plain(name)));
  title.href = write(["list"], { test: name, of: problem.id, q: problem.id });
  title.title = "samples that fail this test";
  const cells = passed.map((share, model) => shareCell(share, share !== null && share < 1 ? failed(model) : null));
  return holding("tr", note ? `note-${note}` : "", holding("td", "test-name", title, note ? element("span", NOTES[note] ?? note, "tag") : null), shareCell(all), ...cells);
}

function headOf(text, title = text) {
  const button = element("button");
  button.type = "button";
  button.append(holding("bdi", null, text.split(/(?<=[/_.-])/).flatMap((part) => [part, element("wbr")])));
  button.title = title;
  const cell = holding("th", "n", button);
  cell.scope = "col";
  return cell;
}

function table(tests, problem) {
  const first = headOf("Test");
  first.className = "";
  const head = holding("tr", null, first, headOf("All", "mean over the models"), state.run.models.map((_, id) => headOf(plain(modelName(id)))));
  return holding("table", "data tests", holding("thead", null, head), holding("tbody", null, tests.map((test) => testRow(test, problem))));
}

function summary(tests) {
  const count = (note) => tests.filter((test) => test.note === note).length;
  return `${tests.length} tests: no sample passes ${count("none")}, every sample passes ${count("all")}. A number is the share of samples that pass, in %; it leads to those that fail.`;
}

function picker() {
  const select = element("select");
  select.setAttribute("aria-label", "Problem");
  select.append(...state.run.problems.map(({ id, name }) => new Option(plain(name && name !== id ? `${id} · ${name}` : id), id)));
  select.addEventListener("change", () => go(write(["problem", select.value])));
  return select;
}

/** Open the page in `root`; return the function that draws an address. */
export function open(root, signal) {
  const select = picker();
  const facts = element("p", null, "note");
  let problem = 0, shown = { id: null, at: 0, tests: null }, drawing = 0;
  const grid = new Grid("Samples of this problem: rows are models. Arrow keys move, Enter opens.", {
    onOpen: ({ row, k }) => go(sampleAddress(row, problem, k)),
    describe: ({ row, k }) => sentence(row, problem, k),
    signal,
  });
  const said = element("p", null, "note");
  const which = element("select");
  which.setAttribute("aria-label", "Which tests");
  which.append(...Object.entries(SHOWN).map(([value, title]) => new Option(title, value)));
  which.addEventListener("change", () => go(changed({ tests: which.value }), true));
  const place = scrolling("Tests by model");
  const jump = (by) => () => go(write(["problem", state.run.problems[(problem + by + state.run.problems.length) % state.run.problems.length].id]), true);
  const around = [["←", "Previous (k)", -1], ["→", "Next (j)", 1]].map(([text, title, by]) => {
    const button = element("button", text);
    Object.assign(button, { type: "button", title });
    button.addEventListener("click", jump(by));
    return button;
  });
  root.append(holding("div", "page-head", element("h1", "Tests"), select, holding("span", "steps", around)), facts, element("h2", "Samples"), grid.node, holding("div", "page-head", element("h2", "Tests by model"), which), said, place);

  function drawGrid() {
    grid.show({
      rows: state.run.models.map((_, id) => {
        const { mean } = spread(state.cells, cellAt(id, problem, 0), state.run.samples);
        return { label: `${plain(modelName(id))}`, title: mean === null ? plain(modelName(id)) : `${plain(modelName(id))}: mean score ${percent(mean)} %`, href: write(["map"], { m: modelSlug(id) }) };
      }),
      groups: [{ label: "" }], per: state.run.samples, byteAt: (row, _, k) => state.cells[cellAt(row, problem, k)],
    });
  }

  function drawTests(address) {
    const note = address.params.get("tests") ?? "";
    which.value = note;
    const tests = shown.tests.filter((test) => !note || (note === "some" ? !["none", "all"].includes(test.note) : test.note === note));
    const old = place.querySelector("th[aria-sort]");
    const fresh = table(tests, state.run.problems[problem]);
    if (old) {
      fresh.tHead.rows[0].cells[old.cellIndex].setAttribute("aria-sort", old.getAttribute("aria-sort"));
      sortAgain(fresh);
    }
    said.textContent = shown.tests.length ? summary(shown.tests) : "No sample of this problem has been tested yet; its tests appear with the first.";
    place.replaceChildren(...(tests.length ? [fresh] : []));
  }

  async function draw(address) {
    const mine = ++drawing;
    const id = address.parts[0] ?? state.run.problems[0]?.id;
    const found = problemOf(id ?? "");
    if (found === null) {
      facts.textContent = state.run.problems.length ? `There is no problem ${plain(id)} in this run.` : "The plan has no problems yet.";
      return;
    }
    problem = found;
    const { name, skill, sub_skills: others, total } = state.run.problems[problem];
    select.value = id;
    facts.textContent = [plain(name ?? ""), plain([skill, ...others].filter(Boolean).join(", ")), total ? `${total} tests count` : "tests not known yet"].filter(Boolean).join(" · ");
    drawGrid();
    if (shown.id !== id || performance.now() - shown.at > AGAIN_MS) {
      const { tests } = await askJson(`api/tests?${new URLSearchParams({ problem: id })}`);
      if (mine !== drawing || signal.aborted) return;
      shown = { id, at: performance.now(), tests };
    }
    drawTests(address);
  }

  on("cells", () => draw(read()).catch((error) => trouble("page", error.message)), signal);
  const walk = (event) => { grid.focus(); grid.press(event); };
  bindPage([
    ["j, k", "next, previous problem", jump(1), jump(-1)],
    ["ArrowLeft, ArrowRight, ArrowUp, ArrowDown", "move over the samples", walk],
    ["n, N", "next, previous sample that did not pass all", walk],
    ["Enter", "open the sample", () => { if (grid.cursor) grid.onOpen(grid.cursor); }],
    ["Escape", "to the map", () => go(write(["map"]))],
  ], signal);
  return draw;
}
