/** The items that match the text of the search, in their order. */
export function matching(items, text) {
  const wanted = text.trim().toLowerCase();
  return items.filter(
    ({ name, category }) =>
      name.toLowerCase().includes(wanted) || category.toLowerCase().includes(wanted),
  );
}

const COMPARE = {
  name: (a, b) => a.name.toLowerCase().localeCompare(b.name.toLowerCase()),
  price: (a, b) => a.price - b.price,
  quantity: (a, b) => a.quantity - b.quantity,
};

/** The items in the order of a sorting, `{ column, direction }`; null stands for the order of the list. */
export function sorted(items, sorting) {
  if (sorting === null) return items;
  const compare = COMPARE[sorting.column];
  const ascending = [...items].sort(compare);
  return sorting.direction === 'ascending' ? ascending : ascending.reverse();
}

/** The sorting after a click on the head of a column. */
export function nextSorting(sorting, column) {
  if (sorting?.column !== column) return { column, direction: 'ascending' };
  if (sorting.direction === 'ascending') return { column, direction: 'descending' };
  return null;
}
