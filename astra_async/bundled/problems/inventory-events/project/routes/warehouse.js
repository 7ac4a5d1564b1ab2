'use strict';

const express = require('express');

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

  return router;
};
