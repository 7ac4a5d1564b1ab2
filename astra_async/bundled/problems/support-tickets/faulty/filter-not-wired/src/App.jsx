import Notice from './components/Notice.jsx';
import StatusFilter from './components/StatusFilter.jsx';
import TicketList from './components/TicketList.jsx';
import { useTickets } from './hooks/useTickets.js';

export default function App() {
  const { state, tickets, notice, retry, close } = useTickets('open');

  return (
    <main>
      <h1>Support tickets</h1>
      <StatusFilter status="open" onChange={() => {}} />
      {notice && <Notice testId="notice" text={notice} />}
      {state === 'loading' && <p data-testid="loading">Loading</p>}
      {state === 'failed' && (
        <Notice testId="error" text="Tickets could not be loaded">
          <button type="button" data-testid="retry" onClick={retry}>
            Retry
          </button>
        </Notice>
      )}
      {state === 'ready' && tickets.length === 0 && <p data-testid="empty">No tickets</p>}
      <TicketList tickets={tickets} onClose={close} />
    </main>
  );
}
