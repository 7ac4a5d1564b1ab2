/** An amount as people read it: 123450 cents are `€1,234.50`. */
export function formatMoney(cents) {
  return (cents / 100).toLocaleString('en-US', { style: 'currency', currency: 'EUR' });
}
