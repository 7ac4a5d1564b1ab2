import { useState } from 'react';

import { employeesError, titleError } from '../validation.js';
import Field from './Field.jsx';

const RULES = { title: titleError, employees: employeesError };
const EMPTY = { title: '', employees: '' };

export default function CompanyForm({ onSubmit }) {
  const [values, setValues] = useState(EMPTY);
  const [changed, setChanged] = useState({});

  const errors = Object.fromEntries(
    Object.entries(RULES).map(([name, rule]) => [name, rule(values[name])]),
  );
  const isValid = Object.values(errors).every((error) => error === '');
  const shown = (name) => (changed[name] ? errors[name] : '');

  function handleChange({ target: { name, value } }) {
    setValues((known) => ({ ...known, [name]: value }));
    setChanged((known) => ({ ...known, [name]: true }));
  }

  function handleSubmit(event) {
    event.preventDefault();
    if (!isValid) return;
    const employees = values.employees.trim();
    onSubmit({
      title: values.title.trim(),
      employees: employees === '' ? null : Number(employees),
    });
    setValues(EMPTY);
    setChanged({});
  }

  return (
    <form data-testid="company-form" noValidate onSubmit={handleSubmit}>
      <Field
        name="title"
        label="Company Title"
        value={values.title}
        error={shown('title')}
        onChange={handleChange}
      />
      <Field
        name="employees"
        label="Number of Employees"
        inputMode="numeric"
        value={values.employees}
        error={shown('employees')}
        onChange={handleChange}
      />
      <button type="submit" data-testid="submit" disabled={!isValid}>
        Submit
      </button>
    </form>
  );
}
