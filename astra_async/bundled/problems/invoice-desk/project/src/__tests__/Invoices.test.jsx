import '@testing-library/jest-dom/vitest';
import { act, fireEvent, render, screen } from '@testing-library/react';

import App from '../App.jsx';

const CUSTOMERS = ['Acme', 'Bolt & Sons', 'Crown'];
const INVOICES = Array.from({ length: 57 }, makeInvoice);

// A small server: 57 invoices. `down` lets it fail, `waiting` holds its answers back.
let requests;
let down;
let waiting;

function makeInvoice(_, index) {
  const id = index + 1;
  const number = `INV-${String(id).padStart(3, '0')}`;
  return { id, number, customer: CUSTOMERS[index % 3], cents: id * 10050, paid: id % 4 === 0 };
}

function listed(query) {
  const page = Number(query.get('page'));
  const size = Number(query.get('size'));
  const found = INVOICES.filter(({ customer }) => customer.includes(query.get('customer') ?? ''));
  return { items: found.slice((page - 1) * size, page * size), total: found.length };
}

async function fakeFetch(path, { method = 'GET', signal } = {}) {
  const url = new URL(path, 'http://desk');
  requests.push({ method, path: url.pathname, query: Object.fromEntries(url.searchParams) });
  await waiting;
  if (signal?.aborted) throw new DOMException('Aborted', 'AbortError');
  if (down) return new Response('{"error": "down"}', { status: 503 });
  return Response.json(listed(url.searchParams));
}

// Holds back the answers to what is asked for from now on; returns what lets them go.
function hold() {
  let release;
  waiting = new Promise((resolve) => {
    release = resolve;
  });
  return () => settle(release);
}

// Reading a body takes a few turns of the event loop.
const settle = (doing) =>
  act(async () => {
    doing();
    for (let turn = 0; turn < 5; turn += 1) {
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  });
const get = (id) => screen.getByTestId(id);
const seen = (id) => screen.queryByTestId(id) !== null;
const click = (id) => settle(() => fireEvent.click(get(id)));
const type = (id, value) => settle(() => fireEvent.change(get(id), { target: { value } }));
const submit = (id) => settle(() => fireEvent.submit(get(id).closest('form')));
const rows = () => screen.queryAllByTestId(/^invoice-\d+$/).map((row) => Number(row.dataset.testid.slice(8)));
const busy = () => screen.getByRole('table').getAttribute('aria-busy');
const current = () => document.querySelector('[aria-current="page"]').textContent;
const lastQuery = () => requests.at(-1).query;
const from = (first, last) => Array.from({ length: last - first + 1 }, (_, index) => first + index);
const open = () => settle(() => render(<App />));

describe('Invoices', () => {
  beforeEach(() => {
    requests = [];
    down = false;
    waiting = null;
    vi.stubGlobal('fetch', fakeFetch);
  });

  it('show the first page, and are busy until it is there', async () => {
    const release = hold();
    await open();
    expect(requests).toEqual([{ method: 'GET', path: '/api/invoices', query: { page: '1', size: '10' } }]);
    expect(busy()).toBe('true');
    await release();
    expect(busy()).toBe('false');
    expect(rows()).toEqual(from(1, 10));
    expect(get('invoice-2')).toHaveTextContent('INV-002Bolt & Sons€201.00open');
    expect(requests).toHaveLength(1);
  });

  it('are reached page by page', async () => {
    await open();
    expect(screen.getByRole('navigation').textContent).toContain('12…6');
    expect(current()).toBe('1');
    expect(get('previous')).toBeDisabled();
    await click('next');
    expect([lastQuery().page, current(), rows()]).toEqual(['2', '2', from(11, 20)]);
    await click('page-6');
    expect([lastQuery().page, current(), rows()]).toEqual(['6', '6', from(51, 57)]);
    expect(get('next')).toBeDisabled();
    expect(get('previous')).toBeEnabled();
    await click('previous');
    expect(rows()).toEqual(from(41, 50));
  });

  it('stay as they are when a page cannot be loaded, which is said', async () => {
    await open();
    expect(seen('load-error')).toBe(false);
    down = true;
    await click('next');
    expect(get('load-error')).toHaveTextContent('Invoices could not be loaded');
    expect([busy(), rows()]).toEqual(['false', from(1, 10)]);
    down = false;
    await click('next');
    expect(seen('load-error')).toBe(false);
    expect(rows()).toEqual(from(21, 30));
  });

  it('keep the first one in sight when more or fewer go on a page', async () => {
    await open();
    expect([...get('size').options].map((option) => option.value)).toEqual(['10', '25', '50']);
    await click('next');
    await click('next');
    await click('next');
    await type('size', '25');
    expect([lastQuery(), rows()]).toEqual([{ page: '2', size: '25' }, from(26, 50)]);
    expect(get('size')).toHaveValue('25');
    await type('size', '10');
    expect([lastQuery(), rows()]).toEqual([{ page: '3', size: '10' }, from(21, 30)]);
  });

  it('are searched for by customer, from the first page', async () => {
    await open();
    await click('next');
    await type('customer', '  Bolt & S ');
    await submit('customer');
    expect(lastQuery()).toEqual({ page: '1', size: '10', customer: 'Bolt & S' });
    expect([current(), rows()[0], rows().length]).toEqual(['1', 2, 10]);
    await click('page-2');
    expect(lastQuery()).toEqual({ page: '2', size: '10', customer: 'Bolt & S' });
    expect(get('next')).toBeDisabled();
    await type('customer', '  ');
    await submit('customer');
    expect(lastQuery()).toEqual({ page: '1', size: '10' });
  });

  it('are not replaced by what comes too late', async () => {
    await open();
    const release = hold();
    await click('next');
    waiting = null;
    await click('next');
    expect(rows()).toEqual(from(21, 30));
    await release();
    expect([current(), busy(), rows()]).toEqual(['3', 'false', from(21, 30)]);
  });
});
