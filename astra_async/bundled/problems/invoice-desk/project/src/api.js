/** One page of the invoices: `{ items, total }`. */
export async function listInvoices({ page, size, customer }) {
  return { items: [], total: 0 };
}

/** Marks invoices as paid. */
export async function payInvoices(ids) {}
