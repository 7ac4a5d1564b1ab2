/**
 * A labelled text input, and its error below it, where there is one.
 * Its test ids are `NAME-input` and `NAME-error`.
 */
export default function Field({ name, label, error, ...inputProps }) {
  return (
    <div className="field">
      <label htmlFor={name}>{label}</label>
      <input
        id={name}
        name={name}
        type="text"
        data-testid={`${name}-input`}
        aria-invalid={Boolean(error)}
        {...inputProps}
      />
      {error && (
        <p className="error" role="alert" data-testid={`${name}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}
