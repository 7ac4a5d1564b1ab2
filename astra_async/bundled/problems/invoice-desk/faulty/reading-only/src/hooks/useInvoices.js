import { useCallback, useEffect, useState } from 'react';

import { listInvoices } from '../api.js';

/** The invoices that a query (`{ page, size, customer }`) asks for. */
export function useInvoices({ page, size, customer }) {
  const [answer, setAnswer] = useState({ items: [], total: 0 });
  const [loading, setLoading] = useState(true);
  const [failed, setFailed] = useState(false);
  const [round, setRound] = useState(0);

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
  }, [page, size, customer, round]);

  const reload = useCallback(() => setRound((number) => number + 1), []);
  return { ...answer, loading, failed, reload };
}
