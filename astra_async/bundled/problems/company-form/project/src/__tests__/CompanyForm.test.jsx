import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import App from '../App.jsx';
import CompanyForm from '../components/CompanyForm.jsx';

const TITLE_MISSING = 'Company title is required';
const EMPLOYEES_WRONG = 'Number of employees must be a whole number above 0';

const title = () => screen.getByTestId('title-input');
const employees = () => screen.getByTestId('employees-input');
const submit = () => screen.getByTestId('submit');
const titleError = () => screen.queryByTestId('title-error');
const employeesError = () => screen.queryByTestId('employees-error');

async function fill(input, text) {
  await userEvent.clear(input);
  if (text) await userEvent.type(input, text);
}

describe('CompanyForm', () => {
  it('starts with empty fields, no errors and a disabled button', () => {
    render(<CompanyForm onSubmit={() => {}} />);
    expect(title()).toHaveValue('');
    expect(employees()).toHaveValue('');
    expect(titleError()).not.toBeInTheDocument();
    expect(employeesError()).not.toBeInTheDocument();
    expect(submit()).toBeDisabled();
  });

  it('enables the button for a title and disables it when the title is gone', async () => {
    render(<CompanyForm onSubmit={() => {}} />);
    await fill(title(), 'Acme');
    expect(submit()).toBeEnabled();
    await fill(title(), '');
    expect(submit()).toBeDisabled();
    await fill(title(), 'B');
    expect(submit()).toBeEnabled();
  });

  it('shows the error of a missing title only while it is missing', async () => {
    render(<CompanyForm onSubmit={() => {}} />);
    await fill(title(), 'A');
    expect(titleError()).not.toBeInTheDocument();
    await fill(title(), '');
    expect(titleError()).toHaveTextContent(TITLE_MISSING);
    await fill(title(), '  ');
    expect(titleError()).toHaveTextContent(TITLE_MISSING);
    await fill(title(), 'B');
    expect(titleError()).not.toBeInTheDocument();
  });

  it('takes no number of employees, or a whole number above zero', async () => {
    render(<CompanyForm onSubmit={() => {}} />);
    await fill(employees(), '12');
    expect(titleError()).not.toBeInTheDocument();
    expect(submit()).toBeDisabled();
    await fill(title(), 'Acme');
    for (const text of ['1', '250', '']) {
      await fill(employees(), text);
      expect(employees()).toHaveValue(text);
      expect(employeesError()).not.toBeInTheDocument();
      expect(submit()).toBeEnabled();
    }
  });

  it('shows an error for any other number of employees, and disables the button', async () => {
    render(<CompanyForm onSubmit={() => {}} />);
    await fill(title(), 'Acme');
    for (const text of ['0', '-3', '2.5', '1e3', '5 x']) {
      await fill(employees(), text);
      expect(employeesError(), text).toHaveTextContent(EMPLOYEES_WRONG);
      expect(submit()).toBeDisabled();
    }
    await fill(employees(), '7');
    expect(employeesError()).not.toBeInTheDocument();
    expect(submit()).toBeEnabled();
  });

  it('hands over the trimmed title and a number, and starts again', async () => {
    const companies = [];
    render(<CompanyForm onSubmit={(company) => companies.push(company)} />);
    await fill(title(), ' Acme ');
    await fill(employees(), '12');
    await userEvent.click(submit());
    expect(companies).toEqual([{ title: 'Acme', employees: 12 }]);
    expect(title()).toHaveValue('');
    expect(employees()).toHaveValue('');
    expect(titleError()).not.toBeInTheDocument();
    expect(submit()).toBeDisabled();
    await fill(title(), 'Umbrella');
    await userEvent.click(submit());
    expect(companies[1]).toEqual({ title: 'Umbrella', employees: null });
  });
});

describe('App', () => {
  it('lists the companies in the order in which they were entered', async () => {
    render(<App />);
    expect(screen.getByTestId('no-companies')).toBeInTheDocument();
    await fill(title(), 'Umbrella');
    await userEvent.click(submit());
    await fill(title(), 'Acme');
    await fill(employees(), '3');
    await userEvent.click(submit());
    const items = screen.getAllByRole('listitem').map((item) => item.textContent);
    expect(items).toEqual(['Umbrella', 'Acme (3)']);
    expect(screen.queryByTestId('no-companies')).not.toBeInTheDocument();
  });
});
