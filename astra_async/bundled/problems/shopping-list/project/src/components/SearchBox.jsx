export default function SearchBox({ text, onChange }) {
  return (
    <label>
      Search
      <input
        type="search"
        data-testid="search"
        value={text}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}
