'use strict';

const express = require('express');

const indexRouter = require('./routes/index');
const productsRouter = require('./routes/products');
const { notFound, failed } = require('./middleware/errors');

const app = express();

app.use(express.json());
app.use('/', indexRouter);
app.use('/products', productsRouter);

app.use(notFound);
app.use(failed);

module.exports = app;
