import ItemTable from './components/ItemTable.jsx';
import SearchBox from './components/SearchBox.jsx';
import Total from './components/Total.jsx';

export default function App({ items }) {
  return (
    <main>
      <h1>Shopping list</h1>
      <SearchBox text="" onChange={() => {}} />
      <ItemTable items={items} />
      <Total cents={0} />
    </main>
  );
}
