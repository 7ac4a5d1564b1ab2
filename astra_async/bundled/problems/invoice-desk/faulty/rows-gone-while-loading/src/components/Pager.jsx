const SIZES = [10, 25, 50];

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

export default function Pager({ page, pages, size, onChange, onResize }) {
  return (
    <nav aria-label="Pages">
      <button type="button" data-testid="previous" disabled={page <= 1} onClick={() => onChange(page - 1)}>
        Previous
      </button>
      {pageNumbers(page, pages).map((number, index) =>
        number === '…' ? (
          <span key={`gap-${index}`}>…</span>
        ) : (
          <button
            key={number}
            type="button"
            data-testid={`page-${number}`}
            className={number === page ? 'current' : undefined}
            onClick={() => onChange(number)}
          >
            {number}
          </button>
        ),
      )}
      <button type="button" data-testid="next" disabled={page >= pages} onClick={() => onChange(page + 1)}>
        Next
      </button>
      <select
        data-testid="size"
        aria-label="Invoices on a page"
        value={size}
        onChange={(event) => onResize(Number(event.target.value))}
      >
        {SIZES.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </nav>
  );
}
