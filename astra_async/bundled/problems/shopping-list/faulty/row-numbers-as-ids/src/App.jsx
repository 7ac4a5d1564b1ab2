import { useState } from 'react';

import ItemTable from './components/ItemTable.jsx';
import SearchBox from './components/SearchBox.jsx';
import Total from './components/Total.jsx';
import { matching, nextSorting, sorted } from './selection.js';

export default function App({ items: initialItems }) {
  const [items, setItems] = useState(initialItems);
  const [text, setText] = useState('');
  const [sorting, setSorting] = useState(null);

  const shown = sorted(matching(items, text), sorting);
  const cents = items
    .filter((item) => !item.bought)
    .reduce((sum, { price, quantity }) => sum + price * quantity, 0);

  function toggle(row) {
    setItems((known) =>
      known.map((item, index) => (index === row ? { ...item, bought: !item.bought } : item)),
    );
  }

  return (
    <main>
      <h1>Shopping list</h1>
      <SearchBox text={text} onChange={setText} />
      <ItemTable
        items={shown}
        sorting={sorting}
        onSort={(column) => setSorting((current) => nextSorting(current, column))}
        onToggle={toggle}
      />
      {shown.length === 0 && <p data-testid="no-items">{`Nothing found for "${text}"`}</p>}
      <Total cents={cents} />
    </main>
  );
}
