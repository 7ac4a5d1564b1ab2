export default function TicketList({ tickets, onClose }) {
  return (
    <ul className="tickets">
      {tickets.map(({ id, title }) => (
        <li key={id} data-testid={`ticket-${id}`}>
          <span>
            #{id} {title}
          </span>
        </li>
      ))}
    </ul>
  );
}
