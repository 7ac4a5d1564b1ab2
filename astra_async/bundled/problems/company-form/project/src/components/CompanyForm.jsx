import Field from './Field.jsx';

export default function CompanyForm() {
  return (
    <form data-testid="company-form" noValidate>
      <Field name="title" label="Company Title" />
      <Field name="employees" label="Number of Employees" inputMode="numeric" />
      <button type="submit" data-testid="submit">
        Submit
      </button>
    </form>
  );
}
