'use strict';

const { expect } = require('chai');
const request = require('supertest');

const { UnknownOrder, Unavailable } = require('../orders/errors');
const Orders = require('../orders/orders');
const { SECONDS, SECRETS, event, header, openShop, signature } = require('./setup');

/** Orders that fail with the given errors, one for each call, before they work. */
class Failing extends Orders {
  constructor(...errors) {
    super();
    this.errors = errors;
    this.calls = 0;
  }

  async pay(id, amount) {
    this.calls += 1;
    const error = this.errors.shift();
    if (error) throw error;
    await super.pay(id, amount);
  }
}

/** Orders that are paid when the test says so. */
class Slow extends Orders {
  constructor() {
    super();
    this.calls = 0;
    this.asked = new Promise((resolve) => {
      this.ask = resolve;
    });
    this.finished = new Promise((resolve) => {
      this.finish = resolve;
    });
  }

  async pay(id, amount) {
    this.calls += 1;
    this.ask();
    const error = await this.finished;
    if (error) throw error;
    await super.pay(id, amount);
  }
}

/** Until the application has looked at a delivery that is under way, or two seconds. */
async function arrived(shop, looksBefore) {
  const moment = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  for (let turn = 0; turn < 200 && shop.clockLooks() === looksBefore; turn += 1) await moment(10);
  await moment(50);
}

const expectAnswer = (response, status, body) => {
  expect(response.status, response.text).to.equal(status);
  expect(response.body).to.deep.equal(body);
};
const PROCESSED = { status: 'processed' };
const DUPLICATE = { status: 'duplicate' };

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

  it('are refused when no signature fits', async () => {
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

  it('are genuine by any signature with any of the secrets', async () => {
    const shop = openShop();
    const body = JSON.stringify(event());
    expectAnswer(await shop.send(body, header(body, { secret: SECRETS[1] })), 200, PROCESSED);
    const other = signature(body, { secret: 'whsec_other' });
    const right = signature(body, { secret: SECRETS[1] });
    expectAnswer(await shop.send(body, `t=${SECONDS},v1=${other},v1=${right}`), 200, DUPLICATE);
    expectAnswer(await shop.send(body, `t=${SECONDS},v1=short,v1=${right},v0=${other}`), 200, DUPLICATE);
    expectAnswer(await shop.send(body, `v2=x,v1=${right},v1=${other},t=${SECONDS}`), 200, DUPLICATE);
    const tampered = JSON.stringify(event({ data: { order: 'A-17', amount: 1 } }));
    const refused = await shop.send(tampered, `t=${SECONDS},v1=${other},v1=${right}`);
    expectAnswer(refused, 401, { error: 'Invalid signature' });
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

  it('wait for the same event while it is being processed', async () => {
    for (const error of [null, new UnknownOrder('A-17')]) {
      const orders = new Slow();
      const shop = openShop(orders);
      const first = shop.deliver().then((response) => response);
      await Promise.race([orders.asked, first]);
      const looksBefore = shop.clockLooks();
      const second = shop.deliver().then((response) => response);
      await arrived(shop, looksBefore);
      expect(orders.calls).to.equal(1);
      orders.finish(error);
      if (error) {
        expectAnswer(await first, 422, { error: 'Unknown order' });
        expectAnswer(await second, 422, { error: 'Unknown order' });
      } else {
        expectAnswer(await first, 200, PROCESSED);
        expectAnswer(await second, 200, DUPLICATE);
        expect(shop.paid()).to.equal(4900);
      }
      expect(orders.calls).to.equal(1);
    }
  });

  it('try again while orders are unavailable', async () => {
    const orders = new Failing(new Unavailable(), new Unavailable());
    const shop = openShop(orders);
    expectAnswer(await shop.deliver(), 200, PROCESSED);
    expect(shop.waits).to.deep.equal([1000, 2000]);
    expect(orders.calls).to.equal(3);
    expectAnswer(await shop.deliver(), 200, DUPLICATE);
    expect(shop.paid()).to.equal(4900);
  });

  it('give up after the last wait and begin anew with the next delivery', async () => {
    const orders = new Failing(...Array.from({ length: 5 }, () => new Unavailable()));
    const shop = openShop(orders);
    const response = await shop.deliver();
    expectAnswer(response, 503, { error: 'Try again later' });
    expect(response.headers['retry-after']).to.equal('60');
    expect(shop.waits).to.deep.equal([1000, 2000, 4000]);
    expect(orders.calls).to.equal(4);
    expectAnswer(await shop.deliver(), 200, PROCESSED);
    expect(shop.waits).to.deep.equal([1000, 2000, 4000, 1000]);
    expect(shop.paid()).to.equal(4900);
  });

  it('do not try again what cannot work', async () => {
    const orders = new Failing(null, new Error('The disk is full'), new Unavailable(), new TypeError('Not a number'));
    const shop = openShop(orders);
    const later = { id: 'evt_9', data: { order: 'C-3', amount: 100 } };
    expectAnswer(await shop.deliver(later), 422, { error: 'Unknown order' });
    expectAnswer(await shop.deliver(), 500, { error: 'The disk is full' });
    expect(shop.waits).to.deep.equal([]);
    expectAnswer(await shop.deliver(), 500, { error: 'Not a number' });
    expect(shop.waits).to.deep.equal([1000]);
    orders.add({ id: 'C-3', amount: 100 });
    expectAnswer(await shop.deliver(later), 200, PROCESSED);
    expectAnswer(await shop.deliver(), 200, PROCESSED);
    expect(orders.find('C-3').paid).to.equal(100);
  });
});
