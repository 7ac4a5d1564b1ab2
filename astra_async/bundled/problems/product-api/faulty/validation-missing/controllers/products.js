'use strict';

const { createProduct } = require('../models/product');
const products = require('../store/products');

function brokenRules({ price, mrp, stock }) {
  const errors = [];
  if (mrp < price) errors.push('MRP must not be below the price');
  if (stock <= 0) errors.push('Stock must be above zero');
  return errors;
}

function create(req, res) {
  res.status(201).json(products.insert(createProduct(req.body)));
}

function list(req, res) {
  res.json(products.all().sort((a, b) => a.id - b.id));
}

function show(req, res) {
  const product = products.find(Number(req.params.id));
  if (!product) {
    res.status(404).json({ error: 'Product not found' });
    return;
  }
  res.json(product);
}

function publish(req, res) {
  const product = products.find(Number(req.params.id));
  if (!product) {
    res.status(404).json({ error: 'Product not found' });
    return;
  }
  const errors = brokenRules(product);
  if (errors.length > 0) {
    res.status(422).json({ errors });
    return;
  }
  res.json(products.update(product.id, { isPublished: true }));
}

function notAllowed(req, res) {
  res.set('Allow', 'GET, PATCH').status(405).json({ error: 'Method not allowed' });
}

module.exports = { create, list, show, publish, notAllowed };
