/**
 * The rules of the company form.
 * Each function takes the text of a field and returns its error, or '' where the text is valid.
 */

const LONGEST_TITLE = 40;

export function titleError(text) {
  if (text.trim() === '') return 'Company title is required';
  if (text.trim().length > LONGEST_TITLE) {
    return `Company title must have at most ${LONGEST_TITLE} characters`;
  }
  return '';
}

export function employeesError(text) {
  if (text.trim() === '') return '';
  if (!/^\d+$/.test(text.trim()) || Number(text) === 0) {
    return 'Number of employees must be a whole number above 0';
  }
  return '';
}
