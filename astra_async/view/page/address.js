// The address holds the whole view: #/page/part?name=value. Whoever gets it sees the same.

/** The address of a hash: its decoded parts and its parameters. */
export function read(hash = location.hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part; // typed by hand with a lone %
    }
  });
  return { page: parts[0] ?? "overview", parts: parts.slice(1), params: new URLSearchParams(query) };
}

/** The hash of a page; parameters that are empty are left out. */
export function write(parts, params = {}) {
  const query = new URLSearchParams();
  const pairs = params instanceof URLSearchParams ? params : Object.entries(params);
  for (const [name, value] of pairs) if (value !== null && value !== undefined && value !== "") query.append(name, value);
  const text = query.toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** The present address with some parameters changed; null takes one away. */
export function changed(changes, { page, parts, params } = read()) {
  const next = new URLSearchParams(params);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") next.delete(name);
    else next.set(name, value);
  }
  return write(page === "overview" ? [] : [page, ...parts], next);
}

/** Go to a hash; `replace` where the way back should not stop here. */
export function go(hash, replace = false) {
  if (hash === location.hash) return;
  if (!replace) {
    location.hash = hash;
    return;
  }
  history.replaceState(null, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
