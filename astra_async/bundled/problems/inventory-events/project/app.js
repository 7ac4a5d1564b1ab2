'use strict';

const express = require('express');

const { InventoryError } = require('./src/errors');

const STATUS = { UNKNOWN_SKU: 404, INVALID_QUANTITY: 400, INSUFFICIENT_STOCK: 409 };

/** The Express application for a service made by `src/service.js`. */
module.exports = function createApp({ inventory, planner, journal }) {
  const app = express();
  app.use(express.json());

  app.post('/articles/:sku/shipments', (req, res) => {
    const { sku } = req.params;
    res.json({ sku, stock: inventory.ship(sku, req.body.quantity) });
  });

  app.post('/articles/:sku/deliveries', (req, res) => {
    const { sku } = req.params;
    res.json({ sku, stock: inventory.receive(sku, req.body.quantity) });
  });

  app.get('/orders', (req, res) => res.json(planner.openOrders()));
  app.get('/journal', (req, res) => res.json(journal.entries));

  app.use((error, req, res, next) => {
    if (error instanceof InventoryError) res.status(STATUS[error.code]).json({ error: error.code });
    else next(error);
  });

  return app;
};
