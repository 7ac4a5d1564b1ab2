import StatusFilter from './components/StatusFilter.jsx';
import TicketList from './components/TicketList.jsx';

export default function App() {
  return (
    <main>
      <h1>Support tickets</h1>
      <StatusFilter status="open" onChange={() => {}} />
      <TicketList tickets={[]} onClose={() => {}} />
    </main>
  );
}
