'use strict';

const express = require('express');

const config = require('../config');
const controller = require('../controllers/documents');
const { readForm } = require('../middleware/multipart');

const router = express.Router();

router.get('/', controller.list);
router.post('/', express.raw({ type: () => true, limit: config.bodyLimit }), readForm, controller.create);
router.get('/:id', controller.find, controller.show);
router.get('/:id/content', controller.find, controller.content);
router.delete('/:id', controller.find, controller.remove);

module.exports = router;
