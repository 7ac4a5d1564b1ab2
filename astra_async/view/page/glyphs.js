// Cell glyphs: the fill height is the share of passed tests. Other states have distinct shapes, so that they
// can be distinguished without color. Canvas and inline pictures use the same description.

import { ALL, MISSING, NO_SOLUTION, NONE, NOT_PLANNED, scoreOf, UNDER_WAY, WAITING } from "./outcomes.js";

/** The shapes of a byte in a unit square, in drawing order: [kind, ink, x, y, width, height]. */
export function shapes(byte) {
  switch (byte) {
    case NOT_PLANNED: return [];
    case MISSING: return [["rect", "faint", 0.2, 0.42, 0.6, 0.16]];
    case UNDER_WAY: return [["rect", "way", 0.33, 0.33, 0.34, 0.34], ["frame", "faint", 0, 0, 1, 1]];
    case WAITING: return [["rect", "faint", 0.38, 0.38, 0.24, 0.24]];
    case NO_SOLUTION: return [["rect", "bad", 0, 0, 1, 1], ["cross", "paper", 0, 0, 1, 1]];
    case NONE: return [["frame", "edge", 0, 0, 1, 1]];
    case ALL: return [["rect", "all", 0, 0, 1, 1]];
    default: {
      const share = Math.max(0.12, Math.min(0.88, scoreOf(byte)));
      return [["rect", "rest", 0, 0, 1, 1], ["rect", "part", 0, 1 - share, 1, share]];
    }
  }
}

/** Flat color of a mean score whose number is printed on it. */
export function flat(byte) {
  if (byte < NONE || byte > ALL || byte === WAITING) return shapes(byte);
  const step = byte === NONE ? 0 : byte === ALL ? 5 : 1 + Math.min(3, Math.floor(4 * scoreOf(byte)));
  return [["rect", `h${step}`, 0, 0, 1, 1], ...(step === 0 ? [["frame", "grid", 0, 0, 1, 1]] : [])];
}

const INKS = {
  paper: "--paper", faint: "--faint", way: "--way", bad: "--bad", edge: "--edge", all: "--h5", rest: "--h1", part: "--h4", grid: "--grid",
  h0: "--h0", h1: "--h1", h2: "--h2", h3: "--h3", h4: "--h4", h5: "--h5", ink: "--ink", muted: "--muted", cursor: "--cursor",
};

/** The current theme's computed colors. */
export function inks() {
  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  const found = {};
  for (const [name, variable] of Object.entries(INKS)) {
    probe.style.color = `var(${variable})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

/** Draw shapes into a rectangle of a canvas, aligned to pixels. */
export function draw(context, parts, colours, [left, top, width, height]) {
  const line = Math.max(1, Math.round(Math.min(width, height) / 9));
  for (const [kind, ink, x, y, w, h] of parts) {
    context.fillStyle = colours[ink];
    context.strokeStyle = colours[ink];
    const [px, py] = [left + Math.round(x * width), top + Math.round(y * height)];
    const [pw, ph] = [Math.max(1, Math.round(w * width)), Math.max(1, top + Math.round((y + h) * height) - py)];
    if (kind === "rect") context.fillRect(px, py, pw, ph);
    else if (kind === "frame") frame(context, [px, py, pw, ph], line);
    else cross(context, [px, py, pw, ph], line);
  }
}

function frame(context, [x, y, width, height], line) {
  context.fillRect(x, y, width, line);
  context.fillRect(x, y + height - line, width, line);
  context.fillRect(x, y, line, height);
  context.fillRect(x + width - line, y, line, height);
}

function cross(context, [x, y, width, height], line) {
  const inner = Math.min(width, height) > 6 ? Math.round(Math.min(width, height) * 0.22) : 0;
  context.lineWidth = line;
  context.beginPath();
  context.moveTo(x + inner, y + inner);
  context.lineTo(x + width - inner, y + height - inner);
  context.moveTo(x + width - inner, y + inner);
  context.lineTo(x + inner, y + height - inner);
  context.stroke();
}

/** Prerender all 256 glyphs of one size; `faded` is for cells outside the filter. */
export function sheet({ width, height, gap, colours, look = shapes, faded = false }) {
  const canvas = document.createElement("canvas");
  canvas.width = width * 256;
  canvas.height = height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (faded) context.globalAlpha = 0.14;
  for (let byte = 0; byte < 256; byte += 1) draw(context, look(byte), colours, [byte * width, 0, width - gap, height - gap]);
  return { pixels: new Uint32Array(context.getImageData(0, 0, width * 256, height).data.buffer), width, height };
}

const SVG = "http://www.w3.org/2000/svg";

const svgNode = (name, attributes) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};

const PIECES = {
  rect: (ink, x, y, width, height) => svgNode("rect", { class: `fill-${ink}`, x: 12 * x, y: 12 * y, width: 12 * width, height: 12 * height }),
  frame: (ink) => svgNode("rect", { class: `line-${ink}`, x: 0.75, y: 0.75, width: 10.5, height: 10.5 }),
  cross: (ink) => svgNode("path", { class: `line-${ink}`, d: "M3 3 9 9M9 3 3 9" }),
};

/** A glyph as inline SVG; `title` is its accessible name, without it the glyph is decorative. */
export function glyph(byte, title = null) {
  const picture = svgNode("svg", { class: "glyph", viewBox: "0 0 12 12", width: 12, height: 12 });
  if (title) {
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", title);
  } else picture.setAttribute("aria-hidden", "true");
  picture.append(...shapes(byte).map(([kind, ink, ...box]) => PIECES[kind](ink, ...box)));
  return picture;
}

const MOST_BARS = 64; // more samples are thinned out evenly

/** Scores of several samples as bars in the order given. */
export function bars(bytes) {
  const shown = bytes.length <= MOST_BARS ? bytes : Array.from({ length: MOST_BARS }, (_, place) => bytes[Math.floor((place * bytes.length) / MOST_BARS)]);
  const [each, height] = [shown.length > 24 ? 4 : 8, 20];
  const picture = svgNode("svg", { class: "spark", viewBox: `0 0 ${each * shown.length} ${height}`, width: each * shown.length, height, "aria-hidden": "true" });
  picture.append(...shown.flatMap((byte, place) => {
    const [x, width, up] = [each * place, each - 1, Math.max(1, Math.round((height - 1) * scoreOf(byte)))];
    return [svgNode("rect", { class: "fill-rest", x, y: 0, width, height }),
      svgNode("rect", { class: byte === NO_SOLUTION ? "fill-bad" : byte === ALL ? "fill-all" : "fill-part", x, y: height - up, width, height: up })];
  }));
  return picture;
}

/** A sparkline of [t, value] points, values from 0 to 1; `title` is its accessible name. */
export function sparkline(points, { from, to, low, high, title }) {
  const [width, height] = [96, 20];
  const across = (t) => 2 + ((width - 5) * (t - from)) / Math.max(1e-9, to - from);
  const up = (value) => height - 3 - ((height - 6) * (value - low)) / Math.max(1e-9, high - low);
  const picture = svgNode("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title });
  const text = svgNode("title", {});
  text.textContent = title;
  const path = points.map(([t, value], place) => `${place ? "L" : "M"}${across(t).toFixed(1)} ${up(value).toFixed(1)}`).join("");
  const [t, value] = points.at(-1);
  picture.append(text, svgNode("path", { class: "line-spark", d: path }), svgNode("circle", { class: "fill-spark", cx: across(t), cy: up(value), r: 2 }));
  return picture;
}

