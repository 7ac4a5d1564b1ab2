import ItemTable from './components/ItemTable.jsx';
import SearchBox from './components/SearchBox.jsx';
import Total from './components/Total.jsx';
import ITEMS from './items.js';

export default function App({ items = ITEMS }) {
  return (
    <main>
      <h1>Shopping list</h1>
      <SearchBox />
      <ItemTable items={items} sorting={null} onSort={() => {}} onToggle={() => {}} />
      <Total cents={0} />
    </main>
  );
}
