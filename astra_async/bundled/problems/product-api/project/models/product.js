'use strict';

/** A product as it is stored and answered. A new product is never published. */
function createProduct({ name, price, mrp, stock }) {
  return { name, price, mrp, stock, isPublished: false };
}

module.exports = { createProduct };
