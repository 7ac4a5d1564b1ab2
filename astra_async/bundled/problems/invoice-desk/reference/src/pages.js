/** What a pager shows for this page of so many: page numbers, and `'…'` where some are left out. */
export function pageNumbers(page, pages) {
  const shown = [1, page - 1, page, page + 1, pages].filter((number) => number >= 1 && number <= pages);
  const numbers = [];
  for (const number of new Set(shown)) {
    const last = numbers.at(-1) ?? 0;
    if (number === last + 2) numbers.push(last + 1);
    if (number > last + 2) numbers.push('…');
    numbers.push(number);
  }
  return numbers;
}

/** How many pages so many items need; at least one. */
export function pageCount(total, size) {
  return Math.max(1, Math.ceil(total / size));
}
