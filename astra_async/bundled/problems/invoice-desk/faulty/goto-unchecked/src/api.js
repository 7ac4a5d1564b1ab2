async function checked(response) {
  if (!response.ok) throw new Error(`The server answered with ${response.status}`);
  return response;
}

/** One page of the invoices: `{ items, total }`. */
export async function listInvoices({ page, size, customer }) {
  const query = new URLSearchParams({ page, size });
  if (customer) query.set('customer', customer);
  const response = await checked(await fetch(`/api/invoices?${query}`));
  return response.json();
}

/** Marks invoices as paid. */
export async function payInvoices(ids) {
  const body = JSON.stringify({ ids: [...ids].sort((a, b) => a - b) });
  const headers = { 'Content-Type': 'application/json' };
  await checked(await fetch('/api/invoices/pay', { method: 'POST', headers, body }));
}
