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

const rgbOf = (hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
const INKS = "8a93a0 ff7b72 56d364 e3b341 79b8ff d2a8ff 56d4dd e6e9ed 9aa4b1 ffa198 7ee787 f2cc60 a5d6ff e2c5ff b3f0ff ffffff".split(" ").map(rgbOf);
const PAPERS = "000000 8e1519 1a6b2a 7a5200 124a94 6e40c9 0b6a73 5c646f 4a515b b62324 238636 9e6a03 1f6feb 8957e5 1b7c83 6e7681".split(" ").map(rgbOf);
const [INK, PAPER] = ["e6e9ed", "16191e"].map(rgbOf); // of .terminal in base.css
const LEAST_CONTRAST = 4.5; // WCAG 2.2, level AA

const mix = (from, to, share) => from.map((part, at) => Math.round(part + share * (to[at] - part)));

/** Relative luminance and contrast ratio as defined by WCAG 2.2. */
function luminance(rgb) {
  const [red, green, blue] = rgb.map((part) => (part <= 10 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** Returns the ink, mixed with white or black as far as needed to be readable on the paper. */
function readable(ink, paper) {
  const end = contrast([255, 255, 255], paper) > contrast([0, 0, 0], paper) ? [255, 255, 255] : [0, 0, 0];
  let share = 0;
  while (share < 1 && contrast(mix(ink, end, share), paper) < LEAST_CONTRAST) share += 0.1;
  return mix(ink, end, Math.min(1, share));
}

/** Returns one of a terminal's 256 colors; `named` has the first 16. */
function indexed(number, named) {
  if (number < 16) return named[number];
  if (number > 231) return [0, 0, 0].fill(8 + 10 * (Math.min(number, 255) - 232));
  const level = (value) => (value ? 55 + 40 * value : 0);
  const rest = number - 16;
  return [Math.floor(rest / 36), Math.floor(rest / 6) % 6, rest % 6].map(level);
}

/** Removes and returns the color after code 38 or 48 from the list of codes. */
function extended(codes, named) {
  const kind = codes.shift();
  if (kind === 5) return indexed(codes.shift() ?? 0, named);
  if (kind === 2) return [0, 1, 2].map(() => Math.min(255, codes.shift() || 0));
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
    else if (code >= 30 && code <= 37) next.ink = INKS[code - 30];
    else if (code >= 90 && code <= 97) next.ink = INKS[code - 82];
    else if (code >= 40 && code <= 47) next.paper = PAPERS[code - 40];
    else if (code >= 100 && code <= 107) next.paper = PAPERS[code - 92];
    else if (code === 38) next.ink = extended(codes, INKS);
    else if (code === 48) next.paper = extended(codes, PAPERS);
    else if (code === 39) next.ink = null;
    else if (code === 49) next.paper = null;
  }
  return next;
}

function span(text, { weights, ink, paper }) {
  if (!weights.size && !ink && !paper) return document.createTextNode(text);
  const made = element("span", text, [...weights].join(" "));
  const inverse = weights.has("inverse");
  const [front, back] = inverse ? [paper ?? PAPER, ink ?? INK] : [ink ?? INK, paper ?? PAPER];
  const shown = readable(weights.has("dim") ? mix(front, back, 0.3) : front, back);
  if (ink || paper || inverse || weights.has("dim")) made.style.color = `rgb(${shown.join(" ")})`;
  if (paper || inverse) made.style.backgroundColor = `rgb(${back.join(" ")})`;
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
