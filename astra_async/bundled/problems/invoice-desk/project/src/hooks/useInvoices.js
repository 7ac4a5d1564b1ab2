/** The invoices that a query (`{ page, size, customer }`) asks for. */
export function useInvoices(query) {
  return { items: [], total: 0, loading: false, failed: false };
}
