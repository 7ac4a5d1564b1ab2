'use strict';

const express = require('express');

const config = require('../config');

const router = express.Router();

// The whole body of a form as a Buffer, `req.body`.
const readBytes = express.raw({ type: () => true, limit: config.bodyLimit });

// The routes of /documents belong here.

module.exports = router;
