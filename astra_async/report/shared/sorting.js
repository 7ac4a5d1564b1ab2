// --- sorting of tables by a click on a header; data-v of a cell is its raw value --------------------

const order = (a, b) => {
  if (a === b) return 0;
  if (a === "") return 1; // empty cells are last in both directions
  if (b === "") return -1;
  const [x, y] = [Number(a), Number(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) return a.localeCompare(b, "en", { numeric: true });
  return x - y;
};

function sortBy(header, down) {
  const table = header.closest("table");
  const place = header.cellIndex;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const body = table.tBodies[0];
  const value = (row) => row.cells[place].dataset.v ?? row.cells[place].textContent;
  const rows = Array.from(body.rows, (row) => [value(row), row]);
  rows.sort(([a], [b]) => (a === "" || b === "" || !down ? order(a, b) : order(b, a)));
  body.append(...rows.map(([, row]) => row));
}

/** Sorts a refilled table again by the column chosen before. */
export function sortAgain(table) {
  const header = table.querySelector("th[aria-sort]");
  if (header) sortBy(header, header.getAttribute("aria-sort") === "descending");
}

document.addEventListener("click", (event) => {
  const header = event.target.closest?.("table.data th");
  if (header?.querySelector("button")) sortBy(header, header.getAttribute("aria-sort") === "ascending");
});
