/** An amount as people read it: 123450 cents are `€1,234.50`. */
function formatMoney(cents) {
  return (cents / 100).toLocaleString('en-US', { style: 'currency', currency: 'EUR' });
}

export default function InvoiceTable({ invoices, loading }) {
  return (
    <table aria-busy={loading}>
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
