'use strict';

const router = require('express').Router();

const controller = require('../controllers/products');

router.post('/', controller.create);
router.get('/', controller.list);
router.get('/:id', controller.show);
router.patch('/:id', controller.publish);
router.put('/:id', controller.notAllowed);
router.delete('/:id', controller.notAllowed);

module.exports = router;
