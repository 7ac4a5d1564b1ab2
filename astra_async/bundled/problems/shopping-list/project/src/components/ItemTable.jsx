import { asMoney } from '../money.js';

/** The items in the given order. */
export default function ItemTable({ items }) {
  return (
    <table>
      <thead>
        <tr>
          <th>Bought</th>
          <th>Name</th>
          <th>Price</th>
          <th>Quantity</th>
          <th>Category</th>
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={item.id} data-testid="item" className={item.bought ? 'bought' : ''}>
            <td>{item.bought && '✓'}</td>
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
