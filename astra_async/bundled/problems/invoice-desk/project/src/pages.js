/** What a pager shows for this page of so many: page numbers, and `'…'` where some are left out. */
export function pageNumbers(page, pages) {
  return [];
}

/** How many pages so many items need; at least one. */
export function pageCount(total, size) {
  return Math.max(1, Math.ceil(total / size));
}
