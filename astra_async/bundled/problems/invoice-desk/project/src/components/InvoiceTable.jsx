import { formatMoney } from '../money.js';

export default function InvoiceTable({ invoices }) {
  return (
    <table>
      <thead>
        <tr>
          <th>Number</th>
          <th>Customer</th>
          <th>Amount</th>
          <th>State</th>
        </tr>
      </thead>
      <tbody>
        {invoices.map((invoice) => (
          <tr key={invoice.id} data-testid={`invoice-${invoice.id}`}>
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
