import { useState } from 'react';

import { pageNumbers } from '../pages.js';

const SIZES = [10, 25, 50];

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
            aria-current={number === page ? 'page' : undefined}
            onClick={() => onChange(number)}
          >
            {number}
          </button>
        ),
      )}
      <button type="button" data-testid="next" disabled={page >= pages} onClick={() => onChange(page + 1)}>
        Next
      </button>
      <GoTo pages={pages} onChange={onChange} />
      <select
        data-testid="size"
        aria-label="Invoices on a page"
        value={size}
        onChange={(event) => onResize(Number(event.target.value))}
      >
        {SIZES.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
    </nav>
  );
}

function GoTo({ pages, onChange }) {
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState(false);

  const submit = (event) => {
    event.preventDefault();
    const number = /^\d+$/.test(text.trim()) ? Number(text) : 0;
    if (number < 1 || number > pages) {
      setWrong(true);
      return;
    }
    setText('');
    onChange(number);
  };

  return (
    <form onSubmit={submit}>
      <input
        data-testid="goto"
        aria-label="Go to page"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setWrong(false);
        }}
      />
      {wrong && (
        <span role="alert" data-testid="goto-error">
          Enter a page from 1 to {pages}
        </span>
      )}
    </form>
  );
}
