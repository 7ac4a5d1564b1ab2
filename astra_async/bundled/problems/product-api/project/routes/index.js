'use strict';

const router = require('express').Router();

router.get('/', (req, res) => {
  res.json({ service: 'product-api', status: 'up' });
});

module.exports = router;
