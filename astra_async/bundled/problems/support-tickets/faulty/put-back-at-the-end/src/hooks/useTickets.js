import { useEffect, useRef, useState } from 'react';

async function request(path, options) {
  const response = await fetch(`/api/tickets${path}`, options);
  if (!response.ok) throw new Error(`The API answered ${response.status}`);
  return response;
}

async function listTickets(status) {
  const response = await request(`?status=${status}`);
  return response.json();
}

function closeTicket(id) {
  return request(`/${id}`, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ status: 'closed' }),
  });
}

/** The tickets with a status, and what can be done with them. */
export function useTickets(status) {
  const [state, setState] = useState('loading');
  const [loaded, setLoaded] = useState([]);
  const [notice, setNotice] = useState('');
  const [attempt, setAttempt] = useState(0);
  const shown = useRef(status);

  useEffect(() => {
    let current = true;
    shown.current = status;
    setState('loading');
    setNotice('');
    listTickets(status).then(
      (answer) => {
        if (!current) return;
        setLoaded(answer);
        setState('ready');
      },
      () => {
        if (current) setState('failed');
      },
    );
    return () => {
      current = false;
    };
  }, [status, attempt]);

  async function close(id) {
    const ticket = loaded.find((known) => known.id === id);
    setLoaded((known) => known.filter((other) => other !== ticket));
    try {
      await closeTicket(id);
    } catch {
      if (shown.current !== status) return;
      setLoaded((known) => [...known, ticket]);
      setNotice(`Ticket #${id} could not be closed`);
    }
  }

  return {
    state,
    tickets: state === 'ready' ? loaded : [],
    notice,
    retry: () => setAttempt((count) => count + 1),
    close,
  };
}
