// --- DOM nodes: text is inserted as text nodes, never as markup -----------------------------------

export const element = (tag, text, className) => {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
};

/** Returns an element with children; strings become text nodes. */
export const holding = (tag, className, ...children) => {
  const made = element(tag, null, className);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
};
