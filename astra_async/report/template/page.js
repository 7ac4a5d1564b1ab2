const data = JSON.parse(document.getElementById("data").textContent);
const place = (entry, problem, sample) => `#sample/${entry}/${problem}/${sample}`;

// --- search: rows of every table and map, and on request the texts of the samples -----------------

const search = document.getElementById("search");
const outcome = document.getElementById("search-outcome");
const hits = document.getElementById("search-hits");
const inside = document.getElementById("search-inside");
const MOST_HITS = 200;

const wanted = () => search.value.trim().toLowerCase();

function filterRows() {
  const text = wanted();
  let shown = 0;
  for (const row of document.querySelectorAll("table.data tbody tr, #map tbody tr, #matrix tbody tr")) {
    row.hidden = text !== "" && !(row.dataset.text ?? row.textContent).toLowerCase().includes(text);
    if (!row.hidden) shown += 1;
  }
  for (const section of document.querySelectorAll("main section")) {
    const rows = Array.from(section.querySelectorAll("tbody tr"));
    section.hidden = text !== "" && rows.every((row) => row.hidden);
  }
  for (const folded of document.querySelectorAll("details.fold")) folded.open = text !== "" && folded.querySelector("tbody tr:not([hidden])") !== null;
  outcome.textContent = text === "" ? "" : `${shown} rows`;
  inside.hidden = text === "" || data.chunks.length === 0;
  hits.replaceChildren();
}

async function searchInside() {
  const text = wanted();
  inside.disabled = true;
  const found = [];
  for (let number = 0; number < data.chunks.length && found.length < MOST_HITS; number += 1) {
    const [entry, problem] = data.chunks[number];
    for (const [sample, record] of Object.entries(await unpack(number))) {
      if (!JSON.stringify(record).toLowerCase().includes(JSON.stringify(text).slice(1, -1))) continue;
      const { name, problems } = data.entries[entry];
      const link = element("a", `${name} · ${problems[problem]} · sample ${sample}`);
      link.href = place(entry, problem, sample);
      found.push(link);
    }
  }
  inside.disabled = false;
  if (text !== wanted()) return;
  hits.replaceChildren(...found.slice(0, MOST_HITS).map((link) => { const item = element("li"); item.append(link); return item; }));
  const more = found.length >= MOST_HITS ? " or more" : "";
  outcome.textContent += `, ${found.length}${more} samples with that text`;
}

search.addEventListener("input", filterRows);
inside.addEventListener("click", searchInside);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, select, dialog")) { event.preventDefault(); search.focus(); }
});
