import { useState } from 'react';

/** Selected invoices, whole ones: those of other pages are not at hand any more. */
export function useSelection() {
  const [selected, setSelected] = useState(new Map());

  const set = (invoices, chosen) =>
    setSelected((before) => {
      const after = new Map(before);
      for (const invoice of invoices) {
        if (chosen) after.set(invoice.id, invoice);
        else after.delete(invoice.id);
      }
      return after;
    });

  return { selected, set, clear: () => setSelected(new Map()) };
}
