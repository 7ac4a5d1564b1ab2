/**
 * The rules of the company form.
 * Each function takes the text of a field and returns its error, or '' where the text is valid.
 */

export function titleError(text) {
  if (text.trim() === '') return 'Company title is required';
  return '';
}

export function employeesError(text) {
  return '';
}
