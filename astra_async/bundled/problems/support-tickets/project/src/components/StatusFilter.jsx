const STATUSES = [
  ['open', 'Open'],
  ['closed', 'Closed'],
];

export default function StatusFilter({ status, onChange }) {
  return (
    <div>
      {STATUSES.map(([value, label]) => (
        <button
          key={value}
          type="button"
          data-testid={`status-${value}`}
          aria-pressed={value === status}
          onClick={() => onChange(value)}
        >
          {label}
        </button>
      ))}
    </div>
  );
}
