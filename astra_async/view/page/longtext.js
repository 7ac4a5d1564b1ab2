// Long texts: show a first piece, and more on request; very long lines are also cut.

import { element, holding } from "./shared/dom.js";
import { escaped, terminal } from "./shared/terminal.js";

const FIRST = 60_000; // characters
const MORE = 300_000;

/** Return a cut position: near a line end if possible, never inside a surrogate pair. */
function cutAt(text, from, most) {
  if (text.length - from <= most) return text.length;
  const end = text.lastIndexOf("\n", from + most);
  if (end > from + most / 2) return end + 1;
  const code = text.charCodeAt(from + most - 1);
  return code >= 0xd800 && code <= 0xdbff ? from + most - 1 : from + most;
}

const sizeOf = (characters) => (characters < 10_000 ? `${characters.toLocaleString("en")} characters` : `${Math.round(characters / 1000).toLocaleString("en")} thousand characters`);

/** Draw a long text piece by piece with `draw(piece)`; with `name`, the text scrolls by keyboard. */
export function pieces(text, draw, { first = FIRST, name = null } = {}) {
  const node = element("div", null, "long");
  let from = 0;
  const button = element("button", null, "more");
  button.type = "button";
  const add = (most) => {
    const end = cutAt(text, from, most);
    button.before(draw(text.slice(from, end)));
    from = end;
    button.textContent = `Show more (${sizeOf(text.length - from)} left)`;
    button.hidden = from >= text.length;
  };
  node.append(button);
  if (name) region(node, name);
  button.addEventListener("click", () => add(MORE));
  add(first);
  return node;
}

/** A program's output in terminal colors, as a scrollable region with this name. */
export const output = (text, name) => pieces(text, (piece) => terminal(piece), { name });

/** A verbatim text with invisible characters made visible. */
export const verbatim = (text) => pieces(text, (piece) => element("pre", escaped(piece), "verbatim"));

/** A button that copies a text; nothing if the browser does not allow copying. */
export function copier(text) {
  if (!navigator.clipboard) return null;
  const button = element("button", "Copy", "quiet");
  button.type = "button";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return button;
}

/** A button that downloads a text as a file. */
export function fileLink(title, name, text, type = "application/json") {
  const button = element("button", title, "quiet");
  button.type = "button";
  button.addEventListener("click", () => {
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([typeof text === "function" ? text() : text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  return button;
}

/** Make a scrollable node reachable by keyboard, which then also scrolls it. */
function region(node, name) {
  for (const [key, value] of Object.entries({ tabindex: "0", role: "region", "aria-label": name })) node.setAttribute(key, value);
  return node;
}

/** A scrollable container, also by keyboard. */
export const scrolling = (name, ...children) => region(holding("div", "scroll", ...children), name);

export const titled = (title, ...children) => holding("div", "titled", element("h2", title), ...children);
