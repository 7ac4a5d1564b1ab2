'use strict';

const router = require('express').Router();

// The routes of /documents belong here.

module.exports = router;
