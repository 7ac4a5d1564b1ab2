import { asMoney } from '../money.js';

export default function Total({ cents }) {
  return (
    <p>
      To pay: <strong data-testid="total">{asMoney(cents)}</strong>
    </p>
  );
}
