/**
 * A list cut into pages.
 * `items` is a ref or computed of an array, `size` how many of them a page shows.
 */
export function usePages(items, size) {
  return {};
}
