'use strict';

const express = require('express');
const multer = require('multer');

const config = require('../config');
const controller = require('../controllers/documents');

const router = express.Router();
const upload = multer({ limits: { fileSize: config.fileLimit } });

router.get('/', controller.list);
router.post('/', upload.single('file'), controller.create);
router.get('/:id', controller.find, controller.show);
router.get('/:id/content', controller.find, controller.content);
router.delete('/:id', controller.find, controller.remove);

module.exports = router;
