'use strict';

const { createProduct } = require('../models/product');
const products = require('../store/products');

module.exports = {
  // The request handlers of /products belong here.
};
