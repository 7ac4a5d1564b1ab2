'use strict';

const express = require('express');

const defaults = require('./config');
const Orders = require('./orders/orders');
const ordersRouter = require('./routes/orders');
const webhooksRouter = require('./routes/webhooks');
const { notFound, failed } = require('./middleware/errors');

/** The application. `now()` is the time in milliseconds: whatever depends on time uses it. */
function createApp({ config = defaults, orders = new Orders(), now = Date.now } = {}) {
  const app = express();

  // Before the parser: the signature of a webhook is made over the bytes of its body.
  app.use('/webhooks', webhooksRouter({ config, orders, now }));
  app.use(express.json({ limit: config.bodyLimit }));
  app.use('/orders', ordersRouter({ orders }));

  app.use(notFound);
  app.use(failed);
  return app;
}

module.exports = createApp;
