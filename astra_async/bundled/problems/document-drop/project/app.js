'use strict';

const express = require('express');

const documentsRouter = require('./routes/documents');
const { notFound, failed } = require('./middleware/errors');

const app = express();

app.use('/documents', documentsRouter);

app.use(notFound);
app.use(failed);

module.exports = app;
