'use strict';

const router = require('express').Router();

router.get('/', (req, res) => {
  res.json({ service: 'document-drop', status: 'up' });
});

module.exports = router;
