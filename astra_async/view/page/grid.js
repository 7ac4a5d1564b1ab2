// A grid of samples on one canvas: rows with groups of cells, as wide as the container. Only the visible part is
// drawn. The keyboard moves a cursor, and a text line describes the cell under it.

import { element, holding } from "./shared/dom.js";
import { flat, inks, shapes, sheet } from "./glyphs.js";
import { isFailing, NOT_PLANNED } from "./outcomes.js";

const OVERSCAN = 300; // CSS pixels drawn above and below the visible part
const WIDEST = 30;
const TALLEST = 18;
const UPRIGHT = 124; // maximum length of a vertical column name
const ROW_LEAST = 12; // keeps row names readable
const BELOW = 70; // the description line and the content below the grid

/** Height of a single-line row; smaller if then all rows fit on the screen. */
function rowHeight(rows, tall) {
  const fitting = Math.floor(tall / Math.max(1, rows));
  return fitting < ROW_LEAST * 0.6 ? 16 : Math.max(ROW_LEAST, Math.min(TALLEST + 1, fitting));
}

/** Sizes in CSS pixels: cells of `width` x `height`; each group has `lines` lines of `across` cells. */
export function arrange(space, { rows, groups, per, longest, tall, wide = false }) {
  const left = Math.round(Math.min(Math.max(60, 6.6 * longest + 14), Math.max(96, space * 0.18)));
  const room = space - left - 2;
  const gap = per === 1 ? 0 : groups > 1 ? Math.max(2, Math.min(8, Math.floor(room / groups / 10))) : 0;
  let best = null;
  for (const least of [5, 4, 3, 2, 1]) {
    for (let lines = 1; lines <= per && !best; lines += 1) {
      const across = Math.ceil(per / lines);
      const width = Math.floor((room - (groups - 1) * gap) / (groups * across));
      if (width >= least) best = { across, lines, width: Math.min(width, wide ? 96 : WIDEST) };
    }
    if (best) break;
  }
  best ??= { across: 1, lines: per, width: 1 };
  const row = rowHeight(rows, tall);
  const height = best.lines > 1 ? Math.min(TALLEST, best.width) : Math.min(row - 1, Math.max(best.width, ROW_LEAST - 1));
  const block = best.lines > 1 ? Math.max(ROW_LEAST, best.lines * height + 3) : row;
  return { ...best, left, gap, height, block, group: best.across * best.width + gap };
}

/** Shorten a name in the middle, because the end often distinguishes models. */
export const shortened = (label, room) => (label.length <= room ? label : `${label.slice(0, Math.ceil(room * 0.45) - 1)}…${label.slice(-Math.floor(room * 0.55))}`);

export class Grid {
  /** `onOpen` is called with a chosen cell, `describe` returns its description, `onCursor` gets cursor moves. */
  constructor(label, { onOpen, describe, onCursor = () => {}, signal }) {
    Object.assign(this, { onOpen, describe, onCursor, rows: [], groups: [], per: 0, cursor: null, hover: null, mask: null });
    this.canvas = element("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-roledescription", "map of samples");
    this.head = element("div", null, "grid-head");
    this.names = element("div", null, "grid-names");
    this.mark = element("i", null, "grid-mark");
    this.body = holding("div", "grid-body", this.canvas, this.names, this.mark);
    this.line = element("p", null, "grid-line");
    this.line.setAttribute("role", "status");
    this.node = holding("div", "grid", this.head, this.body, this.line);
    this.canvas.setAttribute("aria-label", label);
    this.#listen(signal);
  }

  /** Set rows [{label, href}] of groups [{label, href}], `per` cells in each; `byteAt(row, group, k)` is a cell. */
  show({ rows, groups, per, byteAt, maskAt = null, textAt = null, cursor = undefined }) {
    const other = rows.map(({ label }) => label).join() !== this.rows.map(({ label }) => label).join() || groups.length !== this.groups.length || per !== this.per || Boolean(textAt) !== Boolean(this.textAt);
    Object.assign(this, { rows, groups, per, byteAt, maskAt, textAt });
    if (cursor !== undefined) this.cursor = cursor;
    if (other || !this.sizes) this.#layout();
    else this.#drawHead();
    this.draw();
  }

  focus() {
    this.canvas.focus({ preventScroll: true });
  }

  #listen(signal) {
    let asked = 0;
    const later = (work) => () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(work); };
    addEventListener("scroll", later(() => this.draw()), { signal, passive: true });
    const seen = new ResizeObserver(later(() => { if (this.node.clientWidth !== this.space) this.#layout(); this.draw(); }));
    seen.observe(this.node);
    signal.addEventListener("abort", () => seen.disconnect());
    addEventListener("resize", later(() => { if (innerHeight !== this.tall) this.#layout(); this.draw(); }), { signal });
    addEventListener("themechange", () => { this.sheets = null; this.draw(); }, { signal });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.sheets = null; this.draw(); }, { signal });
    this.canvas.addEventListener("pointermove", (event) => this.#point(event), { signal });
    this.canvas.addEventListener("pointerleave", () => { this.hover = null; this.draw(); }, { signal });
    this.canvas.addEventListener("click", (event) => this.#click(event), { signal });
    this.canvas.addEventListener("focus", () => { this.cursor ??= this.#first(); this.draw(); }, { signal });
    this.canvas.addEventListener("blur", () => this.draw(), { signal });
    this.canvas.addEventListener("keydown", (event) => this.press(event), { signal });
  }

  // --- positions -------------------------------------------------------------------------------------

  #first() {
    return this.rows.length && this.groups.length ? { row: 0, group: 0, k: 0 } : null;
  }

  #placeAt(event) {
    const { left, group, width, height, block, across, lines } = this.sizes;
    const box = this.body.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - left, event.clientY - box.top];
    const place = { row: Math.floor(y / block), group: Math.floor(x / group) };
    const [column, line] = [Math.floor((x - place.group * group) / width), Math.floor((y - place.row * block) / height)];
    place.k = Math.min(line, lines - 1) * across + column;
    const inside = x >= 0 && column < across && place.k < this.per && this.rows[place.row] && this.groups[place.group];
    return inside && this.byteAt(place.row, place.group, place.k) !== NOT_PLANNED ? place : null;
  }

  #boxOf({ row, group, k }) {
    const { left, group: step, width, height, block, across } = this.sizes;
    return [left + group * step + (k % across) * width, row * block + Math.floor(k / across) * height, width, height];
  }

  // --- pointer and keys ------------------------------------------------------------------------------

  #point(event) {
    this.hover = this.#placeAt(event);
    this.canvas.classList.toggle("over", this.hover !== null);
    this.#say();
    this.#drawMark();
  }

  #click(event) {
    const place = this.#placeAt(event);
    if (!place) return;
    const same = this.cursor && ["row", "group", "k"].every((name) => this.cursor[name] === place[name]);
    this.cursor = place;
    this.onCursor(place);
    this.draw();
    if (event.pointerType !== "touch" || same) this.onOpen(place); // on touch screens the first tap selects, the second opens
  }

  /** Move the cursor by one column or line as drawn. */
  #stepped(dx, dy) {
    const { across, lines } = this.sizes;
    const at = this.cursor ?? this.#first();
    const [columns, height] = [this.groups.length * across, this.rows.length * lines];
    let x = at.group * across + (at.k % across) + dx;
    let y = at.row * lines + Math.floor(at.k / across) + dy;
    x = Math.max(0, Math.min(columns - 1, x));
    y = Math.max(0, Math.min(height - 1, y));
    const k = (y % lines) * across + (x % across);
    return { row: Math.floor(y / lines), group: Math.floor(x / across), k: Math.min(k, this.per - 1) };
  }

  /** Return the next (1) or previous (-1) failing cell in reading order, or null. */
  #failing(by) {
    const total = this.rows.length * this.groups.length * this.per;
    const at = this.cursor ?? this.#first();
    let index = (at.row * this.groups.length + at.group) * this.per + at.k;
    for (let tries = 1; tries < total; tries += 1) {
      index = (index + by + total) % total;
      const block = Math.floor(index / this.per);
      const place = { row: Math.floor(block / this.groups.length), group: block % this.groups.length, k: index % this.per };
      const seen = !this.maskAt || this.maskAt(place.row, place.group, place.k);
      if (seen && isFailing(this.byteAt(place.row, place.group, place.k))) return place;
    }
    return null;
  }

  /** Handle a key. */
  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.rows.length) return;
    const { across, lines } = this.sizes;
    const page = Math.max(1, Math.floor(innerHeight / this.sizes.block) - 4) * lines;
    const steps = {
      ArrowLeft: [-1, 0], h: [-1, 0], ArrowRight: [1, 0], l: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], k: [0, -lines], j: [0, lines],
      PageUp: [0, -page], PageDown: [0, page], "[": [-across, 0], "]": [across, 0], Home: [-Infinity, 0], End: [Infinity, 0],
    };
    if (event.key === "Enter" && this.cursor) this.onOpen(this.cursor);
    else if (steps[event.key]) this.move(this.#stepped(...steps[event.key]));
    else if (event.key === "n" || event.key === "N") this.move(this.#failing(event.key === "n" ? 1 : -1));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Move the cursor to a cell and scroll the cell into view. */
  move(place) {
    if (!place) return;
    this.cursor = place;
    this.hover = null;
    const [, top, , height] = this.#boxOf(place);
    const y = this.body.getBoundingClientRect().top + top;
    const over = this.head.getBoundingClientRect().bottom + 8;
    if (y < over) scrollBy(0, y - over);
    else if (y + height > innerHeight - 44) scrollBy(0, y + height - innerHeight + 44);
    this.onCursor(place);
    this.draw();
  }

  // --- drawing ---------------------------------------------------------------------------------------

  #layout() {
    this.space = this.node.clientWidth;
    const longest = this.rows.reduce((most, { label }) => Math.max(most, label.length), 0);
    const tall = innerHeight - (this.body.getBoundingClientRect().top + scrollY) - BELOW;
    this.tall = innerHeight;
    this.sizes = arrange(this.space, { rows: this.rows.length, tall, groups: Math.max(1, this.groups.length), per: Math.max(1, this.per), longest, wide: Boolean(this.textAt) });
    this.sheets = null;
    this.body.style.height = `${this.rows.length * this.sizes.block}px`;
    this.#drawHead();
  }

  #drawHead() {
    const { left, group, gap } = this.sizes;
    const inner = group - gap;
    const longest = this.groups.reduce((most, { label }) => Math.max(most, label.length), 0);
    const upright = longest * 6.2 > inner && inner < 110;
    const room = Math.floor((upright ? UPRIGHT : inner) / 6.2); // characters
    this.head.classList.toggle("upright", upright);
    this.head.style.height = upright ? `${Math.min(UPRIGHT, longest * 6.2) + 10}px` : "";
    this.head.hidden = this.groups.every(({ label }) => !label);
    this.head.replaceChildren(...this.groups.map(({ label, href, title }, place) => {
      const name = element(href ? "a" : "span", null);
      name.append(element("bdi", shortened(label, room)));
      if (href) name.href = href;
      name.title = title ?? label;
      name.style.left = `${left + place * group + (upright ? Math.max(0, (inner - 14) / 2) : 0)}px`;
      if (!upright) name.style.width = `${inner}px`;
      return name;
    }));
  }

  #window() {
    const box = this.body.getBoundingClientRect();
    const height = this.rows.length * this.sizes.block;
    const top = Math.max(0, Math.min(height, Math.floor(-box.top - OVERSCAN)));
    return { top, bottom: Math.max(top, Math.min(height, Math.ceil(innerHeight - box.top + OVERSCAN))) };
  }

  #sheets() {
    const ratio = devicePixelRatio || 1;
    if (this.sheets?.ratio === ratio) return this.sheets;
    const colours = inks();
    const [width, height] = [Math.max(1, Math.round(this.sizes.width * ratio)), Math.max(1, Math.round(this.sizes.height * ratio))];
    const gap = this.sizes.width > 2 ? Math.max(1, Math.round(ratio)) : 0;
    const look = this.textAt && this.sizes.width >= 22 ? flat : shapes;
    const [full, faded] = [false, true].map((faint) => sheet({ width, height, gap, colours, look, faded: faint }));
    this.sheets = { ratio, colours, full, faded };
    return this.sheets;
  }

  /** Draw the visible part; cells are copied from the prerendered glyphs. */
  draw() {
    if (!this.sizes || !this.node.isConnected) return;
    const { ratio } = this.#sheets();
    const { top, bottom } = this.#window();
    const [width, height] = [Math.round(this.space * ratio), Math.round((bottom - top) * ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.canvas.style.width = `${this.space}px`;
      this.canvas.style.height = `${bottom - top}px`;
    }
    this.canvas.style.top = `${top}px`;
    this.top = top;
    if (width && height) this.#copy(width, height, { top, bottom });
    this.#drawNames(top, bottom);
    this.#drawMark();
    this.#say();
  }

  #copy(width, height, { top, bottom }) {
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const first = Math.floor(top / this.sizes.block);
    const last = Math.min(this.rows.length, Math.ceil(bottom / this.sizes.block));
    for (let row = first; row < last; row += 1) this.#copyRow(row, pixels, width, height);
    context.putImageData(image, 0, 0);
    if (this.textAt && this.sizes.width >= 22) this.#write(context, first, last);
  }

  #copyRow(row, pixels, stride, height) {
    const { ratio, full, faded } = this.sheets;
    const { left, group, width, height: tall, block, across } = this.sizes;
    for (let place = 0; place < this.groups.length; place += 1) {
      for (let k = 0; k < this.per; k += 1) {
        const byte = this.byteAt(row, place, k);
        if (byte === NOT_PLANNED) continue;
        const from = !this.maskAt || this.maskAt(row, place, k) ? full : faded;
        const x = Math.round((left + place * group + (k % across) * width) * ratio);
        const y = Math.round((row * block + Math.floor(k / across) * tall - this.top) * ratio);
        const end = Math.min(from.width, stride - x);
        for (let line = Math.max(0, -y); line < from.height && y + line < height; line += 1) {
          const source = line * full.width * 256 + byte * from.width;
          const target = (y + line) * stride + x;
          for (let pixel = 0; pixel < end; pixel += 1) pixels[target + pixel] = from.pixels[source + pixel];
        }
      }
    }
  }

  #write(context, first, last) {
    const { colours, ratio } = this.sheets;
    context.font = `${Math.round(11 * ratio)}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let row = first; row < last; row += 1) {
      for (let place = 0; place < this.groups.length; place += 1) {
        const text = this.textAt(row, place);
        if (!text) continue;
        const [x, y, width, height] = this.#boxOf({ row, group: place, k: 0 });
        const byte = this.byteAt(row, place, 0);
        context.fillStyle = byte > 3 + 249 * 0.75 && byte < 254 ? colours.paper : colours.ink;
        context.fillText(text, (x + (width - 1) / 2) * ratio, (y + height / 2 - this.top) * ratio);
      }
    }
  }

  #drawNames(top, bottom) {
    const { block, left } = this.sizes;
    const first = Math.floor(top / block);
    const last = Math.min(this.rows.length, Math.ceil(bottom / block));
    const key = `${first}-${last}-${block}-${left}`;
    if (this.drawn?.key === key && this.drawn.rows === this.rows) return;
    this.drawn = { key, rows: this.rows };
    this.names.replaceChildren(...this.rows.slice(first, last).map(({ label, href, title }, place) => {
      const name = element(href ? "a" : "span");
      name.append(element("bdi", shortened(label, Math.floor((left - 8) / 6.2))));
      if (href) name.href = href;
      name.tabIndex = -1; // the canvas cursor reaches every row, and the list page has links
      name.title = title ?? label;
      name.style.top = `${(first + place) * block}px`;
      name.style.lineHeight = `${Math.min(block - 1, TALLEST)}px`;
      name.style.width = `${left - 8}px`;
      return name;
    }));
  }

  #drawMark() {
    const place = this.hover ?? this.cursor;
    const shown = place !== null && this.rows[place.row] !== undefined && this.groups[place.group] !== undefined;
    this.mark.hidden = !shown;
    if (!shown) return;
    const [x, y, width, height] = this.#boxOf(place);
    for (const [name, value] of Object.entries({ left: x - 1, top: y - 1, width: width + 1, height: height + 1 })) this.mark.style[name] = `${value}px`;
  }

  #say() {
    const place = this.hover ?? this.cursor;
    const text = place && this.rows[place.row] && this.groups[place.group] ? this.describe(place) : "";
    if (this.said === text) return;
    this.said = text;
    this.line.replaceChildren(...(text ? [text].flat() : [element("span", "Point at a cell, or press Tab and the arrow keys.", "muted")]));
  }
}
