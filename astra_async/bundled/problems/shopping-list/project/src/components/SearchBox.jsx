export default function SearchBox({ text, onChange }) {
  return (
    <label>
      Search
      <input type="search" data-testid="search" />
    </label>
  );
}
