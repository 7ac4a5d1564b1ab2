'use strict';

const crypto = require('crypto');

const express = require('express');

const { UnknownOrder, Unavailable } = require('../orders/errors');
const { sign } = require('../webhooks/signature');

const isText = (value) => typeof value === 'string' && value !== '';
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether a body was signed with the secret. */
function isGenuine({ header, body, secret }) {
  const { t: time, v1 } = Object.fromEntries(header.split(',').map((pair) => pair.trim().split('=')));
  if (!time || !v1) return false;
  const given = Buffer.from(v1);
  const right = Buffer.from(sign({ secret, time, body }));
  // timingSafeEqual throws where the lengths differ; the length is no secret.
  return given.length === right.length && crypto.timingSafeEqual(given, right);
}

/** The event in a body, or null where there is none. */
function readEvent(body) {
  let event;
  try {
    event = JSON.parse(body.toString('utf8'));
  } catch {
    return null;
  }
  const valid = isObject(event) && isText(event.id) && isText(event.type) && isObject(event.data);
  return valid ? event : null;
}

/** The routes of /webhooks. Signatures need the bytes of a body, so no other parser may come first. */
function webhooksRouter({ config, orders }) {
  const router = express.Router();
  const processed = new Set();
  const actions = new Map([
    ['payment.succeeded', ({ order, amount }) => orders.pay(order, amount)],
    ['payment.refunded', ({ order, amount }) => orders.refund(order, amount)],
  ]);

  async function receive({ id, type, data }) {
    const action = actions.get(type);
    if (!action) return 'ignored';
    if (processed.has(id)) return 'duplicate';
    processed.add(id); // already now, so that a second delivery on its way pays nothing
    try {
      await action(data);
    } catch (error) {
      processed.delete(id);
      throw error;
    }
    return 'processed';
  }

  function verify(req, res, next) {
    const body = Buffer.isBuffer(req.body) ? req.body : '';
    const header = req.get('Webhook-Signature') || '';
    if (isGenuine({ header, body, secret: config.webhooks.secret })) next();
    else res.status(401).json({ error: 'Invalid signature' });
  }

  const raw = express.raw({ type: () => true, limit: config.bodyLimit });
  router.post('/payments', raw, verify, async (req, res, next) => {
    const event = readEvent(req.body);
    if (!event) {
      res.status(400).json({ error: 'Invalid event' });
      return;
    }
    try {
      res.json({ status: await receive(event) });
    } catch (error) {
      if (error instanceof UnknownOrder) res.status(422).json({ error: 'Unknown order' });
      else if (error instanceof Unavailable) res.set('Retry-After', '60').status(503).json({ error: 'Try again later' });
      else next(error);
    }
  });

  return router;
}

module.exports = webhooksRouter;
