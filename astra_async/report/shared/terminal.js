// --- output of programs: terminal colors are shown, other control sequences are removed -------------------

import { element } from "./dom.js";

const CONTROL = new RegExp(
  "\\x1b\\[([0-9;:]*)m" + // colours and weights
    "|\\x1b\\[[0-?]*[ -/]*[@-~]" + // any other sequence: moving, clearing
    "|\\x1b\\][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\)?" + // titles and links
    "|\\x1b[PX^_][^\\x1b]*(?:\\x1b\\\\)?" +
    "|\\x1b[ -/]*[0-~]?" +
    "|[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]" +
    "|[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]", // what turns the direction of text round is shown
  "g",
);
const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]/g;
const MOST_SPANS = 20_000;

const lines = (text) => String(text).replaceAll("\r\n", "\n").replaceAll("\r", "\n");
const named = (control) => `<U+${control.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
const visible = (control) => (control.charCodeAt(0) > 0x9f ? named(control) : "");

/** Returns text without control sequences; bidirectional control characters become code points. */
export const plain = (text) => lines(text).replace(CONTROL, visible);

/** Returns source code with invisible characters replaced by their code points. */
export const escaped = (text) => lines(text).replace(HIDDEN, named);

/** Returns one of a terminal's 256 colors: a class for the first 16, otherwise a CSS color. */
function indexed(number) {
  if (number < 16) return { name: number };
  if (number > 231) return { css: `rgb(${[0, 0, 0].fill(8 + 10 * (Math.min(number, 255) - 232)).join(" ")})` };
  const level = (value) => (value ? 55 + 40 * value : 0);
  const rest = number - 16;
  return { css: `rgb(${[Math.floor(rest / 36), Math.floor(rest / 6) % 6, rest % 6].map(level).join(" ")})` };
}

/** Removes and returns the color after code 38 or 48 from the list of codes. */
function extended(codes) {
  const kind = codes.shift();
  if (kind === 5) return indexed(codes.shift() ?? 0);
  if (kind === 2) return { css: `rgb(${codes.splice(0, 3).map((value) => Math.min(255, value || 0)).join(" ")})` };
  return null;
}

const WEIGHTS = { 1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "struck" };
const ENDS = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 27: ["inverse"], 29: ["struck"] };

/** Returns the state after one sequence of codes; `state` is not modified. */
function after(state, text) {
  const codes = text.split(/[;:]/).map(Number);
  let next = { ...state, weights: new Set(state.weights) };
  while (codes.length) {
    const code = codes.shift();
    if (code === 0) next = { weights: new Set(), ink: null, paper: null };
    else if (WEIGHTS[code]) next.weights.add(WEIGHTS[code]);
    else if (ENDS[code]) ENDS[code].forEach((weight) => next.weights.delete(weight));
    else if (code >= 30 && code <= 37) next.ink = { name: code - 30 };
    else if (code >= 90 && code <= 97) next.ink = { name: code - 82 };
    else if (code >= 40 && code <= 47) next.paper = { name: code - 40 };
    else if (code >= 100 && code <= 107) next.paper = { name: code - 92 };
    else if (code === 38) next.ink = extended(codes);
    else if (code === 48) next.paper = extended(codes);
    else if (code === 39) next.ink = null;
    else if (code === 49) next.paper = null;
  }
  return next;
}

function span(text, { weights, ink, paper }) {
  if (!weights.size && !ink && !paper) return document.createTextNode(text);
  const made = element("span", text, [...weights].join(" "));
  if (ink?.name !== undefined) made.classList.add(`ink-${ink.name}`);
  else if (ink) made.style.color = ink.css;
  if (paper?.name !== undefined) made.classList.add(`paper-${paper.name}`);
  else if (paper) made.style.backgroundColor = paper.css;
  return made;
}

/** Returns a block with a program's output in its colors, as text nodes and spans. */
export function terminal(text, className = "terminal") {
  const block = element("pre", null, className);
  const source = lines(text);
  let state = { weights: new Set(), ink: null, paper: null };
  let from = 0;
  let pending = "";
  const flush = () => { if (pending) block.append(span(pending, state)); pending = ""; };
  for (const match of source.matchAll(CONTROL)) {
    pending += source.slice(from, match.index);
    from = match.index + match[0].length;
    if (match[1] === undefined || block.childNodes.length > MOST_SPANS) {
      pending += visible(match[0]);
      continue;
    }
    flush();
    state = after(state, match[1]);
  }
  pending += source.slice(from);
  flush();
  return block;
}
