/** Cents as text: 1250 is `12.50`. */
export function asMoney(cents) {
  return (cents / 100).toFixed(2);
}
