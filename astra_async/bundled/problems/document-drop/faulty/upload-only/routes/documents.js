'use strict';

const express = require('express');

const config = require('../config');
const controller = require('../controllers/documents');
const { readForm } = require('../middleware/multipart');

const router = express.Router();

router.post('/', express.raw({ type: () => true, limit: config.bodyLimit }), readForm, controller.create);

module.exports = router;
