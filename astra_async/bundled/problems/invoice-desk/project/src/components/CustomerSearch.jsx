import { useState } from 'react';

/** Hands over the trimmed text when the form is submitted. */
export default function CustomerSearch({ onSearch }) {
  const [text, setText] = useState('');

  const submit = (event) => {
    event.preventDefault();
    onSearch(text.trim());
  };

  return (
    <form role="search" onSubmit={submit}>
      <input
        data-testid="customer"
        aria-label="Customer"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <button type="submit">Search</button>
    </form>
  );
}
