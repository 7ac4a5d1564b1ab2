'use strict';

const express = require('express');

const indexRouter = require('./routes/index');
const documentsRouter = require('./routes/documents');
const { notFound, failed } = require('./middleware/errors');

const app = express();

app.use('/', indexRouter);
app.use('/documents', documentsRouter);

app.use(notFound);
app.use(failed);

module.exports = app;
