import '@testing-library/jest-dom/vitest';
import { act, fireEvent, render, screen } from '@testing-library/react';

import App from '../App.jsx';

const OPEN = [
  { id: 12, title: 'Printer is on fire', status: 'open' },
  { id: 7, title: 'Password forgotten', status: 'open' },
  { id: 31, title: 'Screen is blue', status: 'open' },
];
const CLOSED = [{ id: 5, title: 'Mouse is missing', status: 'closed' }];

// A network in the hands of the test: every request waits in `requests` until it is answered.
let requests;

function fakeFetch(url, options = {}) {
  return new Promise((resolve, reject) => {
    options.signal?.addEventListener('abort', () => reject(new DOMException('Aborted', 'AbortError')));
    requests.push({ url, options, resolve, reject });
  });
}

// Reading a body takes a few turns of the event loop.
const settle = (settling) =>
  act(async () => {
    settling();
    for (let turn = 0; turn < 5; turn += 1) {
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  });
const answer = (request, body, status = 200) =>
  settle(() => request.resolve(new Response(JSON.stringify(body), { status })));
const breakOff = (request) => settle(() => request.reject(new TypeError('Failed to fetch')));
const click = (id) => settle(() => fireEvent.click(screen.getByTestId(id)));
const seen = (id) => screen.queryByTestId(id) !== null;
const tickets = () => screen.queryAllByRole('listitem').map((item) => item.dataset.testid);
const pressed = (status) => screen.getByTestId(`status-${status}`).getAttribute('aria-pressed');

async function open() {
  render(<App />);
  await answer(requests[0], OPEN);
}

describe('Support tickets', () => {
  beforeEach(() => {
    requests = [];
    vi.stubGlobal('fetch', fakeFetch);
  });

  it('loads the open tickets', async () => {
    render(<App />);
    expect(requests.map(({ url }) => url)).toEqual(['/api/tickets?status=open']);
    expect(screen.getByTestId('loading')).toHaveTextContent('Loading');
    await answer(requests[0], OPEN);
    expect(seen('loading')).toBe(false);
    expect(tickets()).toEqual(['ticket-12', 'ticket-7', 'ticket-31']);
    expect(screen.getByTestId('ticket-7')).toHaveTextContent('#7 Password forgotten');
    expect(requests).toHaveLength(1);
  });

  it('says that there are no tickets only when it knows', async () => {
    render(<App />);
    expect(seen('loading')).toBe(true);
    expect(seen('empty')).toBe(false);
    await answer(requests[0], []);
    expect(screen.getByTestId('empty')).toHaveTextContent('No tickets');
    expect(seen('error')).toBe(false);
  });

  it('tells that loading failed and tries again when asked', async () => {
    render(<App />);
    await answer(requests[0], { message: 'Out of order' }, 500);
    expect(screen.getByTestId('error')).toHaveTextContent('Tickets could not be loaded');
    expect(seen('loading')).toBe(false);
    await click('retry');
    expect(seen('error')).toBe(false);
    expect(seen('loading')).toBe(true);
    await breakOff(requests[1]);
    expect(screen.getByTestId('error')).toHaveTextContent('Tickets could not be loaded');
    await click('retry');
    await answer(requests[2], OPEN);
    expect(seen('error')).toBe(false);
    expect(tickets()).toHaveLength(3);
  });

  it('switches to the closed tickets, which cannot be closed', async () => {
    await open();
    expect([pressed('open'), pressed('closed')]).toEqual(['true', 'false']);
    expect(seen('close-12')).toBe(true);
    await click('status-closed');
    expect(requests[1].url).toBe('/api/tickets?status=closed');
    expect(seen('loading')).toBe(true);
    expect(tickets()).toEqual([]);
    await answer(requests[1], CLOSED);
    expect(tickets()).toEqual(['ticket-5']);
    expect(seen('close-5')).toBe(false);
    expect([pressed('open'), pressed('closed')]).toEqual(['false', 'true']);
  });

  it('ignores an answer that comes too late', async () => {
    render(<App />);
    await click('status-closed');
    await answer(requests[1], CLOSED);
    await answer(requests[0], OPEN);
    expect(tickets()).toEqual(['ticket-5']);
    await click('status-open');
    await click('status-closed');
    await breakOff(requests[2]);
    expect(seen('error')).toBe(false);
    expect(seen('loading')).toBe(true);
  });

  it('closes a ticket without waiting for the answer', async () => {
    await open();
    await click('close-7');
    expect(tickets()).toEqual(['ticket-12', 'ticket-31']);
    const { url, options } = requests[1];
    expect([url, options.method]).toEqual(['/api/tickets/7', 'PATCH']);
    expect(new Headers(options.headers).get('content-type')).toBe('application/json');
    expect(JSON.parse(options.body)).toEqual({ status: 'closed' });
    await answer(requests[1], { ...OPEN[1], status: 'closed' });
    expect(tickets()).toEqual(['ticket-12', 'ticket-31']);
    expect(seen('notice')).toBe(false);
  });

  it('puts a ticket back in its place when closing fails', async () => {
    await open();
    await click('close-12');
    await click('close-7');
    expect(tickets()).toEqual(['ticket-31']);
    await answer(requests[2], {}, 409);
    expect(tickets()).toEqual(['ticket-7', 'ticket-31']);
    expect(screen.getByTestId('notice')).toHaveTextContent('Ticket #7 could not be closed');
    await breakOff(requests[1]);
    expect(tickets()).toEqual(['ticket-12', 'ticket-7', 'ticket-31']);
    expect(screen.getByTestId('notice')).toHaveTextContent('Ticket #12 could not be closed');
  });
});
