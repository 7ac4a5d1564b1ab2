'use strict';

const express = require('express');

const warehouseRouter = require('./routes/warehouse');

/** The Express application for a service made by `src/service.js`. */
module.exports = function createApp(service) {
  const app = express();
  app.use(express.json());
  app.use('/', warehouseRouter(service));
  return app;
};
