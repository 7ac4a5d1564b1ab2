export default function TicketList({ tickets, onClose }) {
  return (
    <ul className="tickets">
      {tickets.map(({ id, title, status }) => (
        <li key={id} data-testid={`ticket-${id}`}>
          <span>
            #{id} {title}
          </span>
          {status === 'open' && (
            <button type="button" data-testid={`close-${id}`} onClick={() => onClose(id)}>
              Close
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}
