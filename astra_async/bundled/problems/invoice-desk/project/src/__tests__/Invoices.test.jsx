import { act, fireEvent, render, screen } from '@testing-library/react';

import App from '../App.jsx';

const CUSTOMERS = ['Acme', 'Bolt & Sons', 'Crown'];

// A small server: 57 invoices, every fourth one paid. `down` lets it fail, `waiting` holds its answers back.
let invoices;
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
  const found = invoices.filter(({ customer }) => customer.includes(query.get('customer') ?? ''));
  return { items: found.slice((page - 1) * size, page * size), total: found.length };
}

async function fakeFetch(path, { method = 'GET', body, headers } = {}) {
  const url = new URL(path, 'http://desk');
  requests.push({ method, path: url.pathname, query: Object.fromEntries(url.searchParams), body, headers });
  await waiting;
  if (down) return new Response('{"error": "down"}', { status: 503 });
  if (method === 'GET') return Response.json(listed(url.searchParams));
  const { ids } = JSON.parse(body);
  invoices = invoices.map((one) => (ids.includes(one.id) ? { ...one, paid: true } : one));
  return new Response(null, { status: 204 });
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
const current = () => document.querySelector('[aria-current="page"]').textContent;
const lastQuery = () => requests.at(-1).query;
const from = (first, last) => Array.from({ length: last - first + 1 }, (_, index) => first + index);
const open = () => settle(() => render(<App />));

describe('Invoices', () => {
  beforeEach(() => {
    invoices = Array.from({ length: 57 }, makeInvoice);
    requests = [];
    down = false;
    waiting = null;
    vi.stubGlobal('fetch', fakeFetch);
  });

  it('show the first page, and are busy until it is there', async () => {
    let answer;
    waiting = new Promise((resolve) => {
      answer = resolve;
    });
    await open();
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({ method: 'GET', path: '/api/invoices', query: { page: '1', size: '10' } });
    expect(Object.keys(lastQuery())).toEqual(['page', 'size']);
    expect(screen.getByRole('table')).toHaveAttribute('aria-busy', 'true');
    await settle(answer);
    expect(screen.getByRole('table')).toHaveAttribute('aria-busy', 'false');
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
    expect(rows()).toEqual(from(1, 10));
    expect(screen.getByRole('table')).toHaveAttribute('aria-busy', 'false');
    down = false;
    await click('page-6');
    expect(seen('load-error')).toBe(false);
    expect(rows()).toEqual(from(51, 57));
  });

  it('keep the first one in sight when more or fewer go on a page', async () => {
    await open();
    expect([...get('size').options].map((option) => option.value)).toEqual(['10', '25', '50']);
    await click('page-6');
    await type('size', '25');
    expect([lastQuery(), rows()]).toEqual([{ page: '3', size: '25' }, from(51, 57)]);
    expect(get('size')).toHaveValue('25');
    await click('page-2');
    await type('size', '10');
    expect([lastQuery(), rows()]).toEqual([{ page: '3', size: '10' }, from(21, 30)]);
  });

  it('are reached by a page number that exists', async () => {
    await open();
    for (const wrong of ['7', '0', '-1', '1.5', 'two', ' ']) {
      await type('goto', wrong);
      await submit('goto');
      expect(get('goto-error')).toHaveTextContent('Enter a page from 1 to 6');
      expect(get('goto')).toHaveValue(wrong);
    }
    expect(requests).toHaveLength(1);
    await type('goto', ' 5 ');
    expect(seen('goto-error')).toBe(false);
    await submit('goto');
    expect([current(), rows()]).toEqual(['5', from(41, 50)]);
    expect(get('goto')).toHaveValue('');
  });

  it('are searched for by customer, from the first page', async () => {
    await open();
    await click('page-6');
    await click('select-53');
    await type('customer', '  Bolt & S ');
    expect(requests).toHaveLength(2);
    await submit('customer');
    expect(lastQuery()).toEqual({ page: '1', size: '10', customer: 'Bolt & S' });
    expect([current(), rows()[0], rows().length]).toEqual(['1', 2, 10]);
    expect(get('customer')).toHaveValue('  Bolt & S ');
    expect(seen('selection')).toBe(false);
    await click('page-2');
    expect(lastQuery()).toEqual({ page: '2', size: '10', customer: 'Bolt & S' });
    await type('customer', '  ');
    await submit('customer');
    expect(lastQuery()).toEqual({ page: '1', size: '10' });
  });

  it('are selected one by one on several pages and added up', async () => {
    await open();
    expect(seen('selection')).toBe(false);
    expect(get('select-4')).toBeDisabled();
    await click('select-3');
    await click('select-1');
    await click('next');
    expect(get('select-11')).not.toBeChecked();
    await click('select-11');
    expect(get('selection')).toHaveTextContent('3 selected: €1,507.50');
    await click('previous');
    expect(get('select-3')).toBeChecked();
    await click('select-3');
    expect(get('selection')).toHaveTextContent('2 selected: €1,206.00');
    await type('size', '25');
    expect([get('select-1'), get('select-11')].every((box) => box.checked)).toBe(true);
  });

  it('are selected all at once, as far as they are open and on the page', async () => {
    await open();
    await click('select-2');
    expect(get('select-all')).not.toBeChecked();
    expect(get('select-all').indeterminate).toBe(true);
    await click('select-all');
    expect(get('selection')).toHaveTextContent('8 selected');
    expect(get('select-4')).not.toBeChecked();
    expect([get('select-all').checked, get('select-all').indeterminate]).toEqual([true, false]);
    await click('next');
    expect([get('select-all').checked, get('select-all').indeterminate]).toEqual([false, false]);
    await click('select-all');
    expect(get('selection')).toHaveTextContent('15 selected');
    await click('select-all');
    expect(get('selection')).toHaveTextContent('8 selected');
    invoices = invoices.map((one) => ({ ...one, paid: true }));
    await click('page-3');
    expect(get('select-all')).toBeDisabled();
    expect(get('select-all')).not.toBeChecked();
  });

  it('are paid together, or not at all', async () => {
    await open();
    await click('next');
    await click('select-11');
    await click('previous');
    await click('select-2');
    down = true;
    await click('pay');
    expect(get('pay-error')).toHaveTextContent('Payment failed');
    expect(get('selection')).toHaveTextContent('2 selected');
    down = false;
    const before = requests.length;
    await click('pay');
    const [sent, reloaded] = requests.slice(before);
    expect([sent.method, sent.path, JSON.parse(sent.body)]).toEqual(['POST', '/api/invoices/pay', { ids: [2, 11] }]);
    expect(new Headers(sent.headers).get('Content-Type')).toBe('application/json');
    expect(reloaded).toMatchObject({ method: 'GET', query: { page: '1', size: '10' } });
    expect(get('invoice-2')).toHaveTextContent('paid');
    expect([seen('selection'), seen('pay-error')]).toEqual([false, false]);
  });
});
