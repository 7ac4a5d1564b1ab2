import { useState } from 'react';

import ItemTable from './components/ItemTable.jsx';
import SearchBox from './components/SearchBox.jsx';
import Total from './components/Total.jsx';
import { matching } from './selection.js';

export default function App({ items }) {
  const [text, setText] = useState('');
  const shown = matching(items, text);

  return (
    <main>
      <h1>Shopping list</h1>
      <SearchBox text={text} onChange={setText} />
      <ItemTable items={shown} />
      {shown.length === 0 && <p data-testid="no-items">{`Nothing found for "${text}"`}</p>}
      <Total cents={0} />
    </main>
  );
}
