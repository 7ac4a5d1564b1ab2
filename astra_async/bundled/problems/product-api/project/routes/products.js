'use strict';

const router = require('express').Router();

// The routes of /products belong here.

module.exports = router;
