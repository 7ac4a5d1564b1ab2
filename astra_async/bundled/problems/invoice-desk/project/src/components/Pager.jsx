export default function Pager({ page, pages, onChange }) {
  return <nav aria-label="Pages" />;
}
