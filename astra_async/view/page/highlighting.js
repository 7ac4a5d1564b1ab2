// Worker for syntax highlighting: source code in, tokens (length, name) out. A regular expression that takes too
// long blocks only this thread, which the client terminates.

import highlighter from "./vendor/highlight.min.js";

const ALIASES = { jsx: "javascript", tsx: "typescript", mjs: "javascript", cjs: "javascript", html: "xml", htm: "xml", vue: "xml", svg: "xml", erb: "xml", hbs: "xml", ejs: "xml", gradle: "java", properties: "ini", toml: "ini", gemfile: "ruby", rakefile: "ruby", dockerfile: "bash", env: "bash" };

function languageOf(path) {
  const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
  const ending = name.slice(name.lastIndexOf(".") + 1);
  const language = ALIASES[ending] ?? ending;
  return highlighter.getLanguage(language) ? language : null;
}

/** Flatten the token tree to pairs [length, name], from left to right. */
function flattened(node, name, into) {
  for (const child of node.children) {
    if (typeof child === "string") into.push([child.length, name]);
    else flattened(child, child.scope ? String(child.scope).split(".")[0] : name, into);
  }
  return into;
}

addEventListener("message", ({ data: { path, text } }) => {
  const language = languageOf(path);
  if (!language) {
    postMessage({ tokens: null });
    return;
  }
  const { _emitter: emitter } = highlighter.highlight(text, { language, ignoreIllegals: true });
  postMessage({ tokens: flattened(emitter.rootNode, "", []) });
});
