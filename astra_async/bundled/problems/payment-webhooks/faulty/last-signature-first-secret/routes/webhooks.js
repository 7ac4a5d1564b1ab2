'use strict';

const express = require('express');

const { UnknownOrder, Unavailable } = require('../orders/errors');
const Receiver = require('../webhooks/receiver');
const { isGenuine } = require('../webhooks/signature');

const isText = (value) => typeof value === 'string' && value !== '';
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

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
function webhooksRouter({ config, orders, now, wait }) {
  const router = express.Router();
  const { secrets, toleranceSeconds, retryWaits } = config.webhooks;
  const receiver = new Receiver({ orders, wait, retryWaits });

  router.post('/payments', express.raw({ type: () => true, limit: config.bodyLimit }), async (req, res, next) => {
    const body = Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
    const header = req.get('Webhook-Signature') || '';
    if (!isGenuine({ header, body, secrets, toleranceSeconds, now: now() })) {
      res.status(401).json({ error: 'Invalid signature' });
      return;
    }
    const event = readEvent(body);
    if (!event) {
      res.status(400).json({ error: 'Invalid event' });
      return;
    }
    try {
      res.json({ status: await receiver.receive(event) });
    } catch (error) {
      if (error instanceof UnknownOrder) res.status(422).json({ error: 'Unknown order' });
      else if (error instanceof Unavailable) res.set('Retry-After', '60').status(503).json({ error: 'Try again later' });
      else next(error);
    }
  });

  return router;
}

module.exports = webhooksRouter;
