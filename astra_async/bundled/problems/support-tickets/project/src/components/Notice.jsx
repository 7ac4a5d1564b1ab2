/** A message, with room for a button. */
export default function Notice({ testId, text, children }) {
  return (
    <p className="notice" role="status">
      <span data-testid={testId}>{text}</span> {children}
    </p>
  );
}
