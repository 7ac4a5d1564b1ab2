import { useEffect, useRef, useState } from 'react';

async function request(path, options) {
  return fetch(`/api/tickets${path}`, options);
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
  const [closing, setClosing] = useState(new Set());
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
        setClosing(new Set());
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
    setClosing((known) => new Set(known).add(id));
    try {
      await closeTicket(id);
    } catch {
      if (shown.current !== status) return;
      setClosing((known) => new Set([...known].filter((other) => other !== id)));
      setNotice(`Ticket #${id} could not be closed`);
    }
  }

  return {
    state,
    tickets: state === 'ready' ? loaded.filter(({ id }) => !closing.has(id)) : [],
    notice,
    retry: () => setAttempt((count) => count + 1),
    close,
  };
}
