import { useEffect, useState } from 'react';

async function listTickets(status) {
  const response = await fetch(`/api/tickets?status=${status}`);
  if (!response.ok) throw new Error(`The API answered ${response.status}`);
  return response.json();
}

/** The tickets with a status, and what can be done with them. */
export function useTickets(status) {
  const [state, setState] = useState('loading');
  const [loaded, setLoaded] = useState([]);

  useEffect(() => {
    let current = true;
    setState('loading');
    listTickets(status).then(
      (answer) => {
        if (!current) return;
        setLoaded(answer);
        setState('ready');
      },
      () => {},
    );
    return () => {
      current = false;
    };
  }, [status]);

  return { state, tickets: state === 'ready' ? loaded : [] };
}
