// One file of a diff: numbered lines, changes within lines, and syntax highlighting.

import { element, holding } from "./shared/dom.js";
import { escaped } from "./shared/terminal.js";

const FIRST_LINES = 400;
const MORE_LINES = 2000;
const LONGEST_LINE = 2000; // maximum number of characters drawn per line
const MOST_TO_COLOUR = 200_000; // maximum number of characters highlighted
const DEADLINE_MS = 1500;

// --- parsing ------------------------------------------------------------------------------------------

/** Parse a unified diff into {kind: "same"|"new"|"old"|"hunk"|"note", text, before, after}; line numbers from 1. */
export function readUnified(unified) {
  const rows = [];
  let [before, after, inside] = [0, 0, false];
  const lines = unified.split("\n");
  if (lines.at(-1) === "") lines.pop();
  for (const line of lines) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (hunk) {
      [before, after, inside] = [Number(hunk[1]), Number(hunk[2]), true];
      rows.push({ kind: "hunk", text: line });
    } else if (!inside) continue; // --- the lines --- and +++ 
    else if (line.startsWith("+")) rows.push({ kind: "new", text: line.slice(1), after: after++ });
    else if (line.startsWith("-")) rows.push({ kind: "old", text: line.slice(1), before: before++ });
    else if (line.startsWith("\\")) rows.push({ kind: "note", text: line.slice(2) });
    else rows.push({ kind: "same", text: line.slice(1), before: before++, after: after++ });
  }
  return marked(tidied(rows));
}

/** Make invisible characters visible; line ends are shown only if they differ within the file. */
function tidied(rows) {
  const code = rows.filter(({ kind }) => kind !== "hunk" && kind !== "note");
  const windows = code.length > 0 && code.every(({ text }) => text.endsWith("\r"));
  return rows.map((row) => ({ ...row, text: escaped(windows ? row.text.slice(0, -1) : row.text.replace(/\r$/, "␍")) }));
}

/** For replaced lines (equal counts), mark the changed range [from, to] of each line. */
function marked(rows) {
  for (let at = 0; at < rows.length; at += 1) {
    if (rows[at].kind !== "old") continue;
    let middle = at;
    while (rows[middle]?.kind === "old") middle += 1;
    let end = middle;
    while (rows[end]?.kind === "new") end += 1;
    if (end - middle === middle - at) for (let k = 0; k < middle - at; k += 1) markPair(rows[at + k], rows[middle + k]);
    at = Math.max(at, end - 1);
  }
  return rows;
}

function markPair(old, fresh) {
  const most = Math.min(old.text.length, fresh.text.length, LONGEST_LINE);
  let head = 0;
  while (head < most && old.text[head] === fresh.text[head]) head += 1;
  let tail = 0;
  while (tail < most - head && old.text.at(-1 - tail) === fresh.text.at(-1 - tail)) tail += 1;
  if (head + tail < 2) return; // a different line, not a changed one
  old.mark = [head, old.text.length - tail];
  fresh.mark = [head, fresh.text.length - tail];
}

// --- syntax highlighting --------------------------------------------------------------------------------

let worker = null;
let last = Promise.resolve(null); // requests are sequential, so that each has the whole time limit

/** Return tokens as [[length, name], ...]; null on timeout or without highlighting. */
function tokens(path, text) {
  if (text.length > MOST_TO_COLOUR) return Promise.resolve(null);
  last = last.then(() => askWorker(path, text));
  return last;
}

function askWorker(path, text) {
  worker ??= new Worker(new URL("./highlighting.js", import.meta.url), { type: "module" });
  return new Promise((done) => {
    const give = (found) => { clearTimeout(deadline); done(found); };
    const stop = () => { worker.terminate(); worker = null; give(null); };
    const deadline = setTimeout(stop, DEADLINE_MS);
    worker.onmessage = ({ data }) => give(data.tokens);
    worker.onerror = stop;
    worker.postMessage({ path, text });
  });
}

/** Split tokens by line: lists of [from, to, name]. */
function byLine(all) {
  const lines = [[]];
  return (text) => {
    let [at, column] = [0, 0];
    for (const [length, name] of all) {
      const parts = text.slice(at, at + length).split("\n");
      parts.forEach((part, place) => {
        if (place) { lines.push([]); column = 0; }
        if (part && name) lines.at(-1).push([column, column + part.length, name]);
        column += part.length;
      });
      at += length;
    }
    return lines;
  };
}

/** Add tokens to all rows; the old and the new side are each highlighted as one text. */
async function colour(path, rows) {
  for (const [side, kinds] of [["old", ["old", "same"]], ["new", ["new", "same"]]]) {
    const own = rows.filter(({ kind }) => kinds.includes(kind));
    if (side === "old" && !own.some(({ kind }) => kind === "old")) continue;
    const text = own.map((row) => row.text).join("\n");
    const found = await tokens(path, text);
    if (!found) return false;
    const lines = byLine(found)(text);
    own.forEach((row, place) => { row.tokens = lines[place]; });
  }
  return true;
}

// --- drawing -------------------------------------------------------------------------------------------

/** Draw a line in pieces, split at token and mark boundaries. */
function codeOf({ text, tokens: found = [], mark = null }) {
  const cut = text.length > LONGEST_LINE;
  const shown = cut ? text.slice(0, LONGEST_LINE) : text;
  const ends = new Set([0, shown.length]);
  const spans = found.filter(([from]) => from < shown.length);
  for (const [from, to] of [...spans, ...(mark ? [mark] : [])]) { ends.add(Math.min(from, shown.length)); ends.add(Math.min(to, shown.length)); }
  const places = [...ends].sort((a, b) => a - b);
  const code = element("code");
  let next = 0;
  for (let k = 0; k + 1 < places.length; k += 1) {
    const [from, to] = [places[k], places[k + 1]];
    while (next < spans.length && spans[next][1] <= from) next += 1;
    const name = spans[next] && spans[next][0] <= from ? `hl-${spans[next][2]}` : "";
    const inside = mark && from >= mark[0] && to <= mark[1] ? "changed" : "";
    const classes = [name, inside].filter(Boolean).join(" ");
    code.append(classes ? element("span", shown.slice(from, to), classes) : shown.slice(from, to));
  }
  if (cut) code.append(element("span", ` … ${(text.length - LONGEST_LINE).toLocaleString("en")} more characters`, "muted"));
  return code;
}

const SIGNS = { new: "+", old: "−", same: " " };

function rowOf(row) {
  if (row.kind === "hunk" || row.kind === "note") return holding("div", `line ${row.kind}`, element("span", row.text));
  const line = holding("div", `line ${row.kind}`, element("i", row.before ?? ""), element("i", row.after ?? ""), element("b", SIGNS[row.kind]), codeOf(row));
  return line;
}

/** Draw one file: name, counts of added and removed lines, and the lines. */
export function fileDiff({ path, kind, unified, cut }, { signal }) {
  const rows = readUnified(unified);
  const added = rows.filter((row) => row.kind === "new").length;
  const removed = rows.filter((row) => row.kind === "old").length;
  const summary = holding("summary", null, element("bdi", escaped(path), "path"), element("span", kind, "tag"), element("span", `+${added}`, "added"), element("span", `−${removed}`, "removed"));
  const lines = element("div", null, "diff");
  const button = element("button", null, "more");
  button.type = "button";
  let shown = 0;
  const add = (most) => {
    lines.append(...rows.slice(shown, shown + most).map(rowOf));
    shown = Math.min(rows.length, shown + most);
    button.hidden = shown >= rows.length;
    button.textContent = `Show more (${(rows.length - shown).toLocaleString("en")} lines left)`;
  };
  add(FIRST_LINES);
  button.addEventListener("click", () => add(MORE_LINES));
  const node = holding("details", "file", summary, lines, button, cut ? element("p", "The diff is truncated because the file is too large. The Answer tab has the whole file.", "note") : null);
  if (!rows.length && kind === "changed") node.append(element("p", "Only line ends or the executable bit differ.", "note"));
  node.open = true;
  colour(path, rows).then((done) => {
    if (!done || signal.aborted) return;
    const count = shown;
    shown = 0;
    lines.replaceChildren();
    add(count);
  });
  return node;
}
