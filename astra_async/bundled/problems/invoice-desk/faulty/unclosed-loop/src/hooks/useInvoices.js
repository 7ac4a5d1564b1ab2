import { useEffect, useState } from 'react';

async function listInvoices({ page, size, customer }) {
  const query = new URLSearchParams({ page, size });
  if (customer) query.set('customer', customer);
  const response = await fetch(`/api/invoices?${query}`);
  if (!response.ok) throw new Error(`The server answered with ${response.status}`);
  return response.json();
}

/** The invoices that a query (`{ page, size, customer }`) asks for. */
export function useInvoices({ page, size, customer }) {
  const [answer, setAnswer] = useState({ items: [], total: 0 });
  const [loading, setLoading] = useState(true);
  const [failed, setFailed] = useState(false);

  useEffect(() => {
    let current = true;
    const load = async () => {
      setLoading(true);
      try {
        const found = await listInvoices({ page, size, customer });
        if (!current) return;
        setAnswer(found);
        setFailed(false);
      } catch {
        if (current) setFailed(true);
      }
      if (current) setLoading(false);
    };
    load();
    return () => {
      current = false;
    };
  }, [page, size, customer]);

  return { ...answer, loading, failed };
}
