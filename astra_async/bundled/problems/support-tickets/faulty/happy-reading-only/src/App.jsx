import { useState } from 'react';

import StatusFilter from './components/StatusFilter.jsx';
import TicketList from './components/TicketList.jsx';
import { useTickets } from './hooks/useTickets.js';

export default function App() {
  const [status, setStatus] = useState('open');
  const { state, tickets } = useTickets(status);

  return (
    <main>
      <h1>Support tickets</h1>
      <StatusFilter status={status} onChange={setStatus} />
      {state === 'loading' && <p data-testid="loading">Loading</p>}
      <TicketList tickets={tickets} onClose={() => {}} />
    </main>
  );
}
