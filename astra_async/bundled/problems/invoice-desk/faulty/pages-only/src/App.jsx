import { useState } from 'react';

import CustomerSearch from './components/CustomerSearch.jsx';
import InvoiceTable from './components/InvoiceTable.jsx';
import Pager from './components/Pager.jsx';
import { useInvoices } from './hooks/useInvoices.js';

export default function App() {
  const [query, setQuery] = useState({ page: 1, size: 10, customer: '' });
  const { items, total, loading } = useInvoices(query);

  return (
    <main>
      <h1>Invoices</h1>
      <CustomerSearch onSearch={() => {}} />
      <InvoiceTable invoices={items} loading={loading} />
      <Pager
        page={query.page}
        pages={Math.max(1, Math.ceil(total / query.size))}
        onChange={(page) => setQuery({ ...query, page })}
      />
    </main>
  );
}
