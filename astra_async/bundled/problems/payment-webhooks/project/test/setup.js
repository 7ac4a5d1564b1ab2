'use strict';

const crypto = require('crypto');

const request = require('supertest');

const createApp = require('../app');
const Orders = require('../orders/orders');

const NOW = Date.UTC(2024, 4, 3, 12);
const SECONDS = NOW / 1000;
const SECRETS = ['whsec_new', 'whsec_old'];

const signature = (body, { secret = SECRETS[0], t = SECONDS } = {}) =>
  crypto.createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex');

const header = (body, { secret, t = SECONDS } = {}) => `t=${t},v1=${signature(body, { secret, t })}`;

const event = (changes = {}) => ({
  id: 'evt_1',
  type: 'payment.succeeded',
  data: { order: 'A-17', amount: 4900 },
  ...changes,
});

/** A shop with the order A-17 over 49 euros, a clock that stands still, and a list of all waits. */
function openShop(orders = new Orders()) {
  const waits = [];
  let looks = 0;
  orders.add({ id: 'A-17', amount: 4900 });
  const app = createApp({
    config: {
      port: 0,
      bodyLimit: '100kb',
      webhooks: { secrets: SECRETS, toleranceSeconds: 300, retryWaits: [1000, 2000, 4000] },
    },
    orders,
    now: () => {
      looks += 1;
      return NOW;
    },
    wait: async (ms) => {
      waits.push(ms);
    },
  });
  /** Sends text as it stands; `signed` is the header, null for none. */
  const send = (body, signed = header(body)) => {
    const delivery = request(app).post('/webhooks/payments').set('Content-Type', 'application/json');
    if (signed !== null) delivery.set('Webhook-Signature', signed);
    return delivery.send(body);
  };
  const deliver = (changes) => send(JSON.stringify(event(changes)));
  const paid = () => orders.find('A-17').paid;
  /** How often somebody looked at the clock. */
  const clockLooks = () => looks;
  return { app, orders, waits, send, deliver, paid, clockLooks };
}

module.exports = { SECONDS, SECRETS, event, header, openShop, signature };
