'use strict';

const router = require('express').Router();

const controller = require('../controllers/products');

router.post('/', controller.create);
router.get('/', controller.list);
router.get('/:id', controller.show);

module.exports = router;
