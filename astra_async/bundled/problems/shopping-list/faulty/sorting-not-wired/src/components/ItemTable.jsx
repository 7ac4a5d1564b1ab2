import { asMoney } from '../money.js';

const COLUMNS = [
  ['name', 'Name'],
  ['price', 'Price'],
  ['quantity', 'Quantity'],
];

/** The items in the given order, with heads that sort and boxes that tick off. */
export default function ItemTable({ items, sorting, onSort, onToggle }) {
  const state = (column) => (sorting?.column === column ? sorting.direction : 'none');

  return (
    <table>
      <thead>
        <tr>
          <th>Bought</th>
          {COLUMNS.map(([column, label]) => (
            <th key={column} data-testid={`head-${column}`} aria-sort={state(column)}>
              <button type="button" data-testid={`sort-${column}`} onClick={() => onSort(column)}>
                {label}
              </button>
            </th>
          ))}
          <th>Category</th>
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={item.id} data-testid="item" className={item.bought ? 'bought' : ''}>
            <td>
              <input
                type="checkbox"
                data-testid={`bought-${item.id}`}
                checked={item.bought}
                onChange={() => onToggle(item.id)}
              />
            </td>
            <td>{item.name}</td>
            <td>{asMoney(item.price)}</td>
            <td>{item.quantity}</td>
            <td>{item.category}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
