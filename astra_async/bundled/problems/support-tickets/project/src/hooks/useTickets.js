/** The tickets with a status, and what can be done with them. */
export function useTickets(status) {
  return {};
}
