'use strict';

const crypto = require('crypto');

const { expect } = require('chai');
const request = require('supertest');

const createApp = require('../app');
const { Unavailable } = require('../orders/errors');
const Orders = require('../orders/orders');

const NOW = Date.UTC(2024, 4, 3, 12);
const SECONDS = NOW / 1000;
const SECRET = 'whsec_shop';
const PROCESSED = { status: 'processed' };
const DUPLICATE = { status: 'duplicate' };

const signature = (body, { secret = SECRET, t = SECONDS } = {}) =>
  crypto.createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex');

const header = (body, { secret, t = SECONDS } = {}) => `t=${t},v1=${signature(body, { secret, t })}`;

const event = (changes = {}) => ({
  id: 'evt_1',
  type: 'payment.succeeded',
  data: { order: 'A-17', amount: 4900 },
  ...changes,
});

/** Orders that fail with the given errors, one for each call, before they work. */
class Failing extends Orders {
  constructor(...errors) {
    super();
    this.errors = errors;
  }

  async pay(id, amount) {
    const error = this.errors.shift();
    if (error) throw error;
    await super.pay(id, amount);
  }
}

/** A shop with the order A-17 over 49 euros, and a clock that stands still. */
function openShop(orders = new Orders()) {
  orders.add({ id: 'A-17', amount: 4900 });
  const app = createApp({
    config: { port: 0, bodyLimit: '100kb', webhooks: { secret: SECRET, toleranceSeconds: 300 } },
    orders,
    now: () => NOW,
  });
  /** Sends text as it stands; `signed` is the header, null for none. */
  const send = (body, signed = header(body)) => {
    const delivery = request(app).post('/webhooks/payments').set('Content-Type', 'application/json');
    if (signed !== null) delivery.set('Webhook-Signature', signed);
    return delivery.send(body);
  };
  const deliver = (changes) => send(JSON.stringify(event(changes)));
  const paid = () => orders.find('A-17').paid;
  return { app, send, deliver, paid };
}

const expectAnswer = (response, status, body) => {
  expect(response.status, response.text).to.equal(status);
  expect(response.body).to.deep.equal(body);
};

describe('Payment webhooks', () => {
  it('pay and refund orders, and ignore other events', async () => {
    const shop = openShop();
    expectAnswer(await shop.deliver(), 200, PROCESSED);
    expect(shop.paid()).to.equal(4900);
    const refund = { id: 'evt_2', type: 'payment.refunded', data: { order: 'A-17', amount: 1500 } };
    expectAnswer(await shop.deliver(refund), 200, PROCESSED);
    for (const type of ['payment.pending', 'customer.created', 'constructor']) {
      expectAnswer(await shop.deliver({ id: `evt_${type}`, type }), 200, { status: 'ignored' });
    }
    expect(shop.paid()).to.equal(3400);

    const order = await request(shop.app).post('/orders').send({ id: 'B-1', amount: 700 });
    expectAnswer(order, 201, { id: 'B-1', amount: 700, paid: 0 });
    expectAnswer(await request(shop.app).post('/orders').send({ id: 'B-2' }), 400, { error: 'Invalid order' });
    expectAnswer(await request(shop.app).get('/orders/A-17'), 200, { id: 'A-17', amount: 4900, paid: 3400 });
  });

  it('are signed byte for byte', async () => {
    const shop = openShop();
    const compact = JSON.stringify(event());
    const spaced = `  ${JSON.stringify({ note: 'Grüße \u2603', ...event() }, null, 3)}\r\n`;
    expectAnswer(await shop.send(spaced), 200, PROCESSED);
    const escaped = JSON.stringify(event({ id: 'evt_2' })).replace('payment', '\\u0070ayment').replace('4900', '4.9e3');
    expectAnswer(await shop.send(escaped), 200, PROCESSED);
    expectAnswer(await shop.send(`${compact}\n`, header(compact)), 401, { error: 'Invalid signature' });
    expect(shop.paid()).to.equal(9800);
  });

  it('are refused when the signature does not fit', async () => {
    const shop = openShop();
    const body = JSON.stringify(event());
    const right = signature(body);
    const wrong = [
      null,
      '',
      'rubbish',
      right,
      `v1=${right}`,
      `t=${SECONDS}`,
      `t=${SECONDS},v1=`,
      `t=${SECONDS},v1=${right.slice(0, -1)}`,
      `t=${SECONDS},v1=${right}00`,
      `t=${SECONDS},v1=${'ü'.repeat(64)}`,
      `t=${SECONDS},v0=${right}`,
      `t=${SECONDS + 1},v1=${right}`,
      `t=soon,v1=${signature(body, { t: 'soon' })}`,
      header(body, { secret: 'whsec_other' }),
    ];
    for (const signed of wrong) {
      expectAnswer(await shop.send(body, signed), 401, { error: 'Invalid signature' });
    }
    expectAnswer(await shop.send('{"id": ', null), 401, { error: 'Invalid signature' });
    expect(shop.paid()).to.equal(0);
    expectAnswer(await shop.send(body), 200, PROCESSED);
  });

  it('are refused when they are more than five minutes away', async () => {
    const shop = openShop();
    const body = JSON.stringify(event());
    for (const seconds of [-301, 301, -86400, -SECONDS]) {
      const late = await shop.send(body, header(body, { t: SECONDS + seconds }));
      expectAnswer(late, 401, { error: 'Invalid signature' });
    }
    expect(shop.paid()).to.equal(0);
    expectAnswer(await shop.send(body, header(body, { t: SECONDS - 300 })), 200, PROCESSED);
    expectAnswer(await shop.send(body, header(body, { t: SECONDS + 300 })), 200, DUPLICATE);
  });

  it('are refused when they are signed but no event', async () => {
    const shop = openShop();
    const bodies = [
      '{"id": ',
      'null',
      '[]',
      '"evt_1"',
      JSON.stringify(event({ id: undefined })),
      JSON.stringify(event({ id: '' })),
      JSON.stringify(event({ id: 7 })),
      JSON.stringify(event({ type: undefined })),
      JSON.stringify(event({ data: undefined })),
      JSON.stringify(event({ data: null })),
      JSON.stringify(event({ data: 'A-17' })),
    ];
    for (const body of bodies) {
      expectAnswer(await shop.send(body), 400, { error: 'Invalid event' });
    }
    expect(shop.paid()).to.equal(0);
  });

  it('process an event once', async () => {
    const shop = openShop();
    expectAnswer(await shop.deliver(), 200, PROCESSED);
    expectAnswer(await shop.deliver(), 200, DUPLICATE);
    expectAnswer(await shop.deliver({ id: 'evt_2' }), 200, PROCESSED);
    expectAnswer(await shop.deliver({ id: 'evt_1', data: { order: 'A-17', amount: 1 } }), 200, DUPLICATE);
    expect(shop.paid()).to.equal(9800);
    const another = openShop();
    expectAnswer(await another.deliver(), 200, PROCESSED);
  });

  it('say what failed and begin anew with the next delivery', async () => {
    const orders = new Failing(new Unavailable(), new Error('The disk is full'));
    const shop = openShop(orders);
    const response = await shop.deliver();
    expectAnswer(response, 503, { error: 'Try again later' });
    expect(response.headers['retry-after']).to.equal('60');
    expectAnswer(await shop.deliver(), 500, { error: 'The disk is full' });
    expectAnswer(await shop.deliver(), 200, PROCESSED);
    expectAnswer(await shop.deliver(), 200, DUPLICATE);
    expect(shop.paid()).to.equal(4900);
    const later = { id: 'evt_9', data: { order: 'C-3', amount: 100 } };
    expectAnswer(await shop.deliver(later), 422, { error: 'Unknown order' });
    orders.add({ id: 'C-3', amount: 100 });
    expectAnswer(await shop.deliver(later), 200, PROCESSED);
    expect(orders.find('C-3').paid).to.equal(100);
  });
});
