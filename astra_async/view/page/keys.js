// Keyboard shortcuts: each page has its own, some are global, and `?` shows all.

import { element, holding } from "./shared/dom.js";

const everywhere = new Map();
let page = new Map();
let started = { key: "", at: 0 }; // first key of a sequence such as g m

const typing = (target) => target instanceof Element && target.closest("input, select, textarea, [contenteditable]");

/** Global shortcuts: [keys, description, ...handlers]; one handler per key or one for all; "g m" is a sequence. */
export const bindEverywhere = (bindings) => add(everywhere, bindings);

/** Shortcuts of the current page; removed with the page. */
export function bindPage(bindings, signal) {
  page = new Map();
  add(page, bindings);
  const mine = page;
  signal.addEventListener("abort", () => { if (page === mine) page = new Map(); });
}

function add(map, bindings) {
  for (const [keys, what, ...works] of bindings) {
    for (const [place, key] of keys.split(", ").entries()) map.set(key, { what, work: works[place] ?? works[0], keys: place ? null : keys });
  }
}

function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const help = document.getElementById("help");
  if (event.key === "Escape" && typing(event.target)) {
    event.target.blur();
    return;
  }
  if (typing(event.target) || help.open) return;
  const pair = performance.now() - started.at < 1200 ? `${started.key} ${event.key}` : "";
  started = { key: event.key, at: performance.now() };
  const found = page.get(pair) ?? everywhere.get(pair) ?? page.get(event.key) ?? everywhere.get(event.key);
  if (!found) return;
  if (event.key === "Enter" && event.target.closest?.("a, button, summary")) return;
  event.preventDefault();
  found.work(event);
}

function sheet(title, bindings) {
  const rows = [...bindings.values()].filter(({ keys }) => keys).map(({ keys, what }) => {
    const names = keys.split(", ").flatMap((key, place) => [place ? " " : null, element("kbd", key)]);
    return holding("div", null, holding("dt", null, names), element("dd", what));
  });
  return rows.length ? holding("section", null, element("h3", title), holding("dl", "keys", rows)) : null;
}

/** Show the help dialog with the page's and the global shortcuts. */
export function showHelp() {
  const help = document.getElementById("help");
  const close = element("button", "Close");
  close.type = "button";
  close.addEventListener("click", () => help.close());
  const title = element("h2", "Keys");
  title.id = "help-title";
  help.replaceChildren(holding("div", "bar", title, close), holding("div", "sheets", sheet("This page", page), sheet("Everywhere", everywhere)));
  help.showModal();
}

addEventListener("keydown", pressed);
document.getElementById("help").addEventListener("click", (event) => { if (event.target.id === "help") event.target.close(); });
