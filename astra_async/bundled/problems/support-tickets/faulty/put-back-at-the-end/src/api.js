/** The tickets with this status, as `{ id, title, status }`. */
export async function listTickets(status) {
  const response = await fetch(`/api/tickets?status=${status}`);
  if (!response.ok) throw new Error(`The API answered ${response.status}`);
  return response.json();
}

/** Closes a ticket. */
export async function closeTicket(id) {
  const response = await fetch(`/api/tickets/${id}`, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ status: 'closed' }),
  });
  if (!response.ok) throw new Error(`The API answered ${response.status}`);
}
