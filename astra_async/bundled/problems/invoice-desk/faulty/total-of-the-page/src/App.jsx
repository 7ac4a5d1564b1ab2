import { useState } from 'react';

import CustomerSearch from './components/CustomerSearch.jsx';
import InvoiceTable from './components/InvoiceTable.jsx';
import Pager from './components/Pager.jsx';
import { useInvoices } from './hooks/useInvoices.js';

export default function App() {
  const [query, setQuery] = useState({ page: 1, size: 10, customer: '' });
  const { items, loading, failed } = useInvoices(query);

  const resize = (size) => {
    const first = (query.page - 1) * query.size;
    setQuery({ ...query, size, page: Math.floor(first / size) + 1 });
  };

  return (
    <main>
      <h1>Invoices</h1>
      <CustomerSearch onSearch={(customer) => setQuery({ ...query, page: 1, customer })} />
      {failed && (
        <p role="alert" data-testid="load-error">
          Invoices could not be loaded
        </p>
      )}
      <InvoiceTable invoices={items} loading={loading} />
      <Pager
        page={query.page}
        pages={Math.max(1, Math.ceil(items.length / query.size))}
        size={query.size}
        onChange={(page) => setQuery({ ...query, page })}
        onResize={resize}
      />
    </main>
  );
}
