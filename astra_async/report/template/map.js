// --- the map of samples -----------------------------------------------------------------------

function heat(passed, total) {
  if (passed < 0) return "hm";
  if (total === 0 || passed === 0) return "h0";
  return passed === total ? "h5" : `h${1 + Math.min(3, Math.floor((4 * passed) / total))}`;
}

function cell(entry, problem, sample) {
  const { passed, failure, totals, problems } = data.entries[entry];
  const tests = passed[problem][sample];
  const why = data.failures[failure[problem][sample]];
  const link = element("a", tests < 0 ? "–" : (LETTERS[why] ?? tests), `cell ${heat(tests, totals[problem])}`);
  link.href = place(entry, problem, sample);
  const said = tests < 0 ? "missing" : `${tests} of ${totals[problem]} passed${why ? `, ${why}` : ""}`;
  link.title = `${problems[problem]}, sample ${sample}: ${said}`;
  return link;
}

function drawMap(entry) {
  const { name: model, problems, totals, passed, left_out: leftOut } = data.entries[entry];
  const columns = passed.reduce((most, row) => Math.max(most, row.length), 0);
  const head = document.createElement("thead").insertRow();
  head.append(element("td"), ...Array.from({ length: columns }, (_, sample) => element("th", sample)));
  const body = document.createElement("tbody");
  problems.forEach((name, problem) => {
    const row = body.insertRow();
    row.dataset.text = `${name} ${data.problems[name] ?? ""}`;
    const header = element("th", `${name} (${totals[problem] || "?"})`);
    header.scope = "row";
    header.title = name;
    row.append(header);
    passed[problem].forEach((_, sample) => row.insertCell().append(cell(entry, problem, sample)));
  });
  document.getElementById("map").replaceChildren(element("caption", model), head.parentElement, body);
  document.getElementById("map-cut").textContent = leftOut > 0 ? `${leftOut} more samples are not shown.` : "";
}

const select = document.getElementById("map-entry");
data.entries.forEach(({ name }, number) => select.append(new Option(name, number)));
select.addEventListener("change", () => { drawMap(Number(select.value)); filterRows(); });
document.getElementById("map-letters").textContent = Object.entries(LETTERS)
  .map(([why, letter]) => `${letter} ${why}`).join(", ");
if (data.entries.length) drawMap(0);

// --- the matrix of problems and models ------------------------------------------------------------

const MOST_PROBLEMS = 1000;
const matrixOrder = document.getElementById("matrix-order");

function share(mean) {
  if (mean === null) return "hm";
  if (mean === 0) return "h0";
  return mean === 1 ? "h5" : `h${1 + Math.min(3, Math.floor(4 * mean))}`;
}

/** One row for each problem: its name, and the mean score of each entry (null without a result). */
function matrixRows() {
  const places = data.entries.map(({ problems }) => new Map(problems.map((name, number) => [name, number])));
  return Object.keys(data.problems).map((name, number) => {
    const means = data.entries.map(({ means: all }, entry) => all[places[entry].get(name)] ?? null);
    const known = means.filter((mean) => mean !== null);
    const average = known.length ? known.reduce((sum, mean) => sum + mean, 0) / known.length : 2;
    const apart = known.length ? Math.max(...known) - Math.min(...known) : -1;
    return { name, number, means, average, apart, places: places.map((all) => all.get(name)) };
  });
}

function matrixCell(mean, entry, problem) {
  const text = mean === null ? "–" : (100 * mean).toFixed(0);
  const link = element("a", text, `cell ${share(mean)}`);
  link.href = "#samples-map";
  link.title = `${data.entries[entry].name}: ${mean === null ? "no result" : `mean score ${(100 * mean).toFixed(1)} %`}`;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    select.value = entry;
    drawMap(entry);
    const row = document.querySelectorAll("#map tbody tr")[problem];
    row?.scrollIntoView({ block: "center" });
    row?.querySelector("a")?.focus();
  });
  return link;
}

function drawMatrix() {
  const order = { planned: (a, b) => a.number - b.number, hard: (a, b) => a.average - b.average, apart: (a, b) => b.apart - a.apart };
  const rows = matrixRows().sort(order[matrixOrder.value]);
  const head = document.createElement("thead").insertRow();
  const corner = element("th", "Problem");
  corner.scope = "col";
  const several = new Set(data.entries.map(({ format }) => format)).size > 1;
  head.append(corner, ...data.entries.map(({ name, label }) => {
    const header = element("th");
    header.scope = "col";
    header.title = name;
    header.append(element("bdi", several ? name : label));
    return header;
  }));
  const body = document.createElement("tbody");
  for (const { name, means, places } of rows.slice(0, MOST_PROBLEMS)) {
    const row = body.insertRow();
    row.dataset.text = `${name} ${data.problems[name]}`;
    const header = element("th", name);
    header.scope = "row";
    header.title = `${name} ${data.problems[name]}`;
    row.append(header);
    means.forEach((mean, entry) => row.insertCell().append(matrixCell(mean, entry, places[entry])));
  }
  document.getElementById("matrix").replaceChildren(head.parentElement, body);
  const left = rows.length - MOST_PROBLEMS;
  document.getElementById("matrix-cut").textContent = left > 0 ? `${left} more problems are not shown; problems.csv has all problems.` : "";
}

matrixOrder.addEventListener("change", () => { drawMatrix(); filterRows(); });
if (data.entries.length) drawMatrix();
