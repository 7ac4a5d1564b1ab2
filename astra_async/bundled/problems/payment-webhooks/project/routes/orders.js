'use strict';

const express = require('express');

/** The routes of /orders. */
function ordersRouter({ orders }) {
  const router = express.Router();

  router.post('/', (req, res) => {
    const { id, amount } = req.body;
    if (typeof id !== 'string' || !Number.isInteger(amount) || amount <= 0) {
      res.status(400).json({ error: 'Invalid order' });
      return;
    }
    res.status(201).json(orders.add({ id, amount }));
  });

  router.get('/:id', (req, res) => {
    const order = orders.find(req.params.id);
    if (!order) {
      res.status(404).json({ error: 'Unknown order' });
      return;
    }
    res.json(order);
  });

  return router;
}

module.exports = ordersRouter;
