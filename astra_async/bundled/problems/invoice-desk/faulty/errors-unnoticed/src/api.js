/** One page of the invoices: `{ items, total }`. */
export async function listInvoices({ page, size, customer }) {
  const query = new URLSearchParams({ page, size });
  if (customer) query.set('customer', customer);
  const response = await fetch(`/api/invoices?${query}`);
  const { items = [], total = 0 } = await response.json();
  return { items, total };
}

/** Marks invoices as paid. */
export async function payInvoices(ids) {
  const body = JSON.stringify({ ids: [...ids].sort((a, b) => a - b) });
  const headers = { 'Content-Type': 'application/json' };
  await fetch('/api/invoices/pay', { method: 'POST', headers, body });
}
