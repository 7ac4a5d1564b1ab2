import { useState } from 'react';

export default function CustomerSearch({ onSearch }) {
  const [text, setText] = useState('');

  return (
    <form role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        data-testid="customer"
        aria-label="Customer"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          onSearch(event.target.value.trim());
        }}
      />
      <button type="submit">Search</button>
    </form>
  );
}
