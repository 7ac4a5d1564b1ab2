import CustomerSearch from './components/CustomerSearch.jsx';
import InvoiceTable from './components/InvoiceTable.jsx';
import Pager from './components/Pager.jsx';
import { useInvoices } from './hooks/useInvoices.js';

export default function App() {
  const { items } = useInvoices({ page: 1, size: 10, customer: '' });

  return (
    <main>
      <h1>Invoices</h1>
      <CustomerSearch onSearch={() => {}} />
      <InvoiceTable invoices={items} />
      <Pager page={1} pages={1} onChange={() => {}} />
    </main>
  );
}
