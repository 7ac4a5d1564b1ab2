/** Companies as `{ title, employees }`; `employees` is null where the number is unknown. */
export default function CompanyList({ companies }) {
  if (companies.length === 0) {
    return <p data-testid="no-companies">No companies yet</p>;
  }
  return (
    <ul data-testid="company-list">
      {companies.map(({ title, employees }, index) => (
        <li key={index}>{employees === null ? title : `${title} (${employees})`}</li>
      ))}
    </ul>
  );
}
