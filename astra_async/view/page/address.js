// The URL's hash has the complete state of the view: #/page/part?name=value. A copied URL shows the same view.

/** Parse a hash into decoded parts and parameters. */
export function read(hash = location.hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part; // the user typed a single %
    }
  });
  return { page: parts[0] ?? "overview", parts: parts.slice(1), params: new URLSearchParams(query) };
}

/** Format a hash; empty parameters are omitted. */
export function write(parts, params = {}) {
  const query = new URLSearchParams();
  const pairs = params instanceof URLSearchParams ? params : Object.entries(params);
  for (const [name, value] of pairs) if (value !== null && value !== undefined && value !== "") query.append(name, value);
  const text = query.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Return the current hash with some parameters changed; null removes a parameter. */
export function changed(changes, { page, parts, params } = read()) {
  const next = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") next.delete(name);
    else next.set(name, value);
  }
  return write(page === "overview" ? [] : [page, ...parts], next);
}

/** Go to a hash; with `replace`, without a history entry. */
export function go(hash, replace = false) {
  if (hash === location.hash) return;
  if (!replace) {
    location.hash = hash;
    return;
  }
  history.replaceState(null, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
