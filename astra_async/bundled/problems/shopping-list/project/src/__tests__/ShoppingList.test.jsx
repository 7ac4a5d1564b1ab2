import '@testing-library/jest-dom/vitest';
import { render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import App from '../App.jsx';

const ITEMS = Object.freeze(
  [
    { id: 7, name: 'milk', category: 'Dairy', price: 120, quantity: 2, bought: false },
    { id: 3, name: 'bread', category: 'Bakery', price: 90, quantity: 10, bought: false },
    { id: 9, name: 'Apples', category: 'Fruit', price: 1000, quantity: 1, bought: true },
    { id: 4, name: 'Almond milk', category: 'Drinks', price: 90, quantity: 1, bought: false },
    { id: 5, name: 'Cheese', category: 'Dairy', price: 540, quantity: 1, bought: false },
  ].map(Object.freeze),
);

const rows = () => screen.queryAllByTestId('item');
const names = () => rows().map((row) => within(row).getAllByRole('cell')[1].textContent);
const search = () => screen.getByTestId('search');
const sortBy = (column) => userEvent.click(screen.getByTestId(`sort-${column}`));
const sortState = (column) => screen.getByTestId(`head-${column}`).getAttribute('aria-sort');
const box = (id) => screen.getByTestId(`bought-${id}`);
const total = () => screen.getByTestId('total').textContent;

async function searchFor(text) {
  await userEvent.clear(search());
  if (text) await userEvent.type(search(), text);
}

describe('Shopping list', () => {
  beforeEach(() => render(<App items={ITEMS} />));

  it('begins with all items in the order of the list', () => {
    expect(names()).toEqual(['milk', 'bread', 'Apples', 'Almond milk', 'Cheese']);
    expect(rows()[1]).toHaveTextContent('0.90');
    expect(box(9)).toBeChecked();
    expect(screen.queryByTestId('no-items')).not.toBeInTheDocument();
  });

  it('finds items by a part of their name or category', async () => {
    await searchFor('MILK');
    expect(search()).toHaveValue('MILK');
    expect(names()).toEqual(['milk', 'Almond milk']);
    await searchFor('dair');
    expect(names()).toEqual(['milk', 'Cheese']);
    await searchFor('  bread ');
    expect(names()).toEqual(['bread']);
    await searchFor('   ');
    expect(rows()).toHaveLength(5);
  });

  it('says when nothing is found', async () => {
    await searchFor('soap.*');
    expect(rows()).toHaveLength(0);
    expect(screen.getByTestId('no-items')).toHaveTextContent('Nothing found for "soap.*"');
    await searchFor('');
    expect(rows()).toHaveLength(5);
    expect(screen.queryByTestId('no-items')).not.toBeInTheDocument();
  });

  it('sorts by name up, down and not at all', async () => {
    await sortBy('name');
    expect(names()).toEqual(['Almond milk', 'Apples', 'bread', 'Cheese', 'milk']);
    expect(sortState('name')).toBe('ascending');
    await sortBy('name');
    expect(names()).toEqual(['milk', 'Cheese', 'bread', 'Apples', 'Almond milk']);
    expect(sortState('name')).toBe('descending');
    await sortBy('name');
    expect(names()).toEqual(['milk', 'bread', 'Apples', 'Almond milk', 'Cheese']);
    expect(sortState('name')).toBe('none');
  });

  it('sorts numbers as numbers and keeps the order of equal ones', async () => {
    await sortBy('price');
    expect(names()).toEqual(['bread', 'Almond milk', 'milk', 'Cheese', 'Apples']);
    await sortBy('price');
    expect(names()).toEqual(['Apples', 'Cheese', 'milk', 'bread', 'Almond milk']);
    await sortBy('quantity');
    expect(names()).toEqual(['Apples', 'Almond milk', 'Cheese', 'milk', 'bread']);
    expect([sortState('price'), sortState('quantity')]).toEqual(['none', 'ascending']);
  });

  it('ticks off the item that was clicked, whatever is shown', async () => {
    await sortBy('name');
    await searchFor('milk');
    await userEvent.click(box(7));
    expect(box(7)).toBeChecked();
    expect(box(4)).not.toBeChecked();
    await searchFor('');
    await sortBy('quantity');
    expect([7, 3, 9, 4, 5].map((id) => box(id).checked)).toEqual([true, false, true, false, false]);
    await userEvent.click(box(9));
    expect(box(9)).not.toBeChecked();
  });

  it('adds up what is still to be bought on the whole list', async () => {
    expect(total()).toBe('17.70');
    await searchFor('bread');
    expect(total()).toBe('17.70');
    await userEvent.click(box(3));
    expect(total()).toBe('8.70');
    await userEvent.click(box(3));
    expect(total()).toBe('17.70');
  });
});
