/**
 * The rules of the company form.
 * Each function takes the text of a field and returns its error, or '' where the text is valid.
 */

export function titleError(text) {
  return text.trim() === '' ? 'Company title is required' : '';
}

export function employeesError(text) {
  if (text.trim() === '') return '';
  if (!/^\d+$/.test(text.trim()) || Number(text) === 0) {
    return 'Number of employees must be a whole number above 0';
  }
  return '';
}
