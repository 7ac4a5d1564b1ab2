import { useState } from 'react';

import { payInvoices } from './api.js';
import CustomerSearch from './components/CustomerSearch.jsx';
import InvoiceTable from './components/InvoiceTable.jsx';
import Pager from './components/Pager.jsx';
import { useInvoices } from './hooks/useInvoices.js';
import { useSelection } from './hooks/useSelection.js';
import { formatMoney } from './money.js';
import { pageCount } from './pages.js';

export default function App() {
  const [query, setQuery] = useState({ page: 1, size: 10, customer: '' });
  const [unpaid, setUnpaid] = useState(false);
  const { items, total, loading, failed, reload } = useInvoices(query);
  const selection = useSelection();
  const chosen = [...selection.selected.values()];
  const sum = chosen.reduce((cents, invoice) => cents + invoice.cents, 0);

  const search = (customer) => {
    selection.clear();
    setQuery({ ...query, page: 1, customer });
  };
  const resize = (size) => {
    const first = (query.page - 1) * query.size;
    setQuery({ ...query, size, page: Math.floor(first / size) + 1 });
  };
  const pay = async () => {
    setUnpaid(false);
    try {
      await payInvoices(chosen.map(({ id }) => id));
    } catch {
      setUnpaid(true);
      return;
    }
    selection.clear();
    reload();
  };

  return (
    <main>
      <h1>Invoices</h1>
      <CustomerSearch onSearch={search} />
      {failed && (
        <p role="alert" data-testid="load-error">
          Invoices could not be loaded
        </p>
      )}
      <InvoiceTable invoices={items} loading={loading} selected={selection.selected} onSelect={selection.set} />
      <Pager
        page={query.page}
        pages={pageCount(total, query.size)}
        size={query.size}
        onChange={(page) => setQuery({ ...query, page })}
        onResize={resize}
      />
      {chosen.length > 0 && (
        <p>
          <span data-testid="selection">
            {chosen.length} selected: {formatMoney(sum)}
          </span>
          <button type="button" data-testid="pay" onClick={pay}>
            Pay
          </button>
        </p>
      )}
      {unpaid && (
        <p role="alert" data-testid="pay-error">
          Payment failed
        </p>
      )}
    </main>
  );
}
