import { useState } from 'react';

import { employeesError, titleError } from '../validation.js';
import Field from './Field.jsx';

const RULES = { title: titleError, employees: employeesError };
const EMPTY = { title: '', employees: '' };

export default function CompanyForm({ onSubmit }) {
  const [values, setValues] = useState(EMPTY);
  const [errors, setErrors] = useState(EMPTY);
  const [isValid, setIsValid] = useState(false);

  function handleChange({ target: { name, value } }) {
    setValues((known) => ({ ...known, [name]: value }));
    setErrors((known) => ({ ...known, [name]: RULES[name](values[name]) }));
    setIsValid(Object.entries(RULES).every(([field, rule]) => rule(values[field]) === ''));
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
    setErrors(EMPTY);
    setIsValid(false);
  }

  return (
    <form data-testid="company-form" noValidate onSubmit={handleSubmit}>
      <Field
        name="title"
        label="Company Title"
        value={values.title}
        error={errors.title}
        onChange={handleChange}
      />
      <Field
        name="employees"
        label="Number of Employees"
        inputMode="numeric"
        value={values.employees}
        error={errors.employees}
        onChange={handleChange}
      />
      <button type="submit" data-testid="submit" disabled={!isValid}>
        Submit
      </button>
    </form>
  );
}
