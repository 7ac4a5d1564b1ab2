'use strict';

const express = require('express');

/** The routes of /webhooks. */
function webhooksRouter() {
  const router = express.Router();

  // POST /payments belongs here.

  return router;
}

module.exports = webhooksRouter;
