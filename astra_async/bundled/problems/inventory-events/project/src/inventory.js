'use strict';

const { EventEmitter } = require('events');

const { InventoryError, UNKNOWN_SKU } = require('./errors');

class Inventory extends EventEmitter {
  /** @param articles list of { sku, stock, minimum, maximum } */
  constructor(articles) {
    super();
    this.articles = new Map(articles.map((article) => [article.sku, { ...article }]));
  }

  /** A copy of the article; throws UNKNOWN_SKU where there is none. */
  article(sku) {
    const article = this.articles.get(sku);
    if (!article) throw new InventoryError(UNKNOWN_SKU, `There is no article ${sku}`);
    return { ...article };
  }

  /** How many pieces there are. */
  stock(sku) {
    return this.article(sku).stock;
  }
}

module.exports = Inventory;
