/** The items that match the text of the search, in their order. */
export function matching(items, text) {
  return items;
}

/** The items in the order of a sorting, `{ column, direction }`; null stands for the order of the list. */
export function sorted(items, sorting) {
  return items;
}

/** The sorting after a click on the head of a column. */
export function nextSorting(sorting, column) {
  return sorting;
}
