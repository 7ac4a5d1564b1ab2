import CustomerSearch from './components/CustomerSearch.jsx';
import InvoiceTable from './components/InvoiceTable.jsx';
import Pager from './components/Pager.jsx';

export default function App() {
  return (
    <main>
      <h1>Invoices</h1>
      <CustomerSearch onSearch={() => {}} />
      <InvoiceTable invoices={[]} loading={false} />
      <Pager page={1} pages={1} size={10} onChange={() => {}} onResize={() => {}} />
    </main>
  );
}
