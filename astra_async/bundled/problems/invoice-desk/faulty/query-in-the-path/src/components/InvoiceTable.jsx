import { formatMoney } from '../money.js';

export default function InvoiceTable({ invoices, loading, selected, onSelect }) {
  const open = invoices.filter((invoice) => !invoice.paid);
  const count = open.filter(({ id }) => selected.has(id)).length;
  const all = open.length > 0 && count === open.length;

  return (
    <table aria-busy={loading}>
      <thead>
        <tr>
          <th>
            <input
              type="checkbox"
              data-testid="select-all"
              aria-label="All open invoices of this page"
              ref={(box) => {
                if (box) box.indeterminate = count > 0 && !all;
              }}
              checked={all}
              disabled={open.length === 0}
              onChange={() => onSelect(open, !all)}
            />
          </th>
          <th>Number</th>
          <th>Customer</th>
          <th>Amount</th>
          <th>State</th>
        </tr>
      </thead>
      <tbody>
        {invoices.map((invoice) => (
          <tr key={invoice.id} data-testid={`invoice-${invoice.id}`}>
            <td>
              <input
                type="checkbox"
                data-testid={`select-${invoice.id}`}
                aria-label={invoice.number}
                checked={selected.has(invoice.id)}
                disabled={invoice.paid}
                onChange={(event) => onSelect([invoice], event.target.checked)}
              />
            </td>
            <td>{invoice.number}</td>
            <td>{invoice.customer}</td>
            <td>{formatMoney(invoice.cents)}</td>
            <td>{invoice.paid ? 'paid' : 'open'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
