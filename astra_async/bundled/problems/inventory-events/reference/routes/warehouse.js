'use strict';

const express = require('express');

const { InventoryError, INSUFFICIENT_STOCK, INVALID_QUANTITY, UNKNOWN_SKU } = require('../src/errors');

const STATUS = { [UNKNOWN_SKU]: 404, [INVALID_QUANTITY]: 400, [INSUFFICIENT_STOCK]: 409 };

module.exports = function warehouseRouter({ inventory, planner, journal }) {
  const router = express.Router();

  router.get('/articles/:sku', (req, res) => {
    res.json({ sku: req.params.sku, stock: inventory.stock(req.params.sku) });
  });

  router.post('/articles/:sku/shipments', (req, res) => {
    const stock = inventory.ship(req.params.sku, req.body.quantity);
    res.json({ sku: req.params.sku, stock });
  });

  router.post('/articles/:sku/deliveries', (req, res) => {
    const stock = inventory.receive(req.params.sku, req.body.quantity);
    res.json({ sku: req.params.sku, stock });
  });

  router.get('/orders', (req, res) => {
    res.json(planner.openOrders());
  });

  router.get('/journal', (req, res) => {
    res.json(journal.entries);
  });

  router.use((error, req, res, next) => {
    if (!(error instanceof InventoryError)) {
      next(error);
      return;
    }
    res.status(STATUS[error.code]).json({ error: error.code });
  });

  return router;
};
