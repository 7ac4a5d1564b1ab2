/** The tickets with this status, as `{ id, title, status }`. */
export async function listTickets(status) {
  return [];
}

/** Closes a ticket. */
export async function closeTicket(id) {}
