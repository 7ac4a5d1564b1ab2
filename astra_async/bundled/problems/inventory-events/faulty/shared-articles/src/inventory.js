'use strict';

const { EventEmitter } = require('events');

const { InventoryError, INSUFFICIENT_STOCK, INVALID_QUANTITY, UNKNOWN_SKU } = require('./errors');

class Inventory extends EventEmitter {
  /** @param articles list of { sku, stock, minimum, maximum } */
  constructor(articles) {
    super();
    this.articles = new Map(articles.map((article) => [article.sku, article]));
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

  /** Takes goods in and returns the new stock. */
  receive(sku, quantity) {
    const before = this.stock(sku);
    checkQuantity(quantity);
    const stock = this.setStock(sku, before + quantity);
    this.emit('received', { sku, quantity, stock });
    return stock;
  }

  /** Gives goods out and returns the new stock. */
  ship(sku, quantity) {
    const { stock: before, minimum } = this.article(sku);
    checkQuantity(quantity);
    if (quantity > before) {
      throw new InventoryError(INSUFFICIENT_STOCK, `Only ${before} of ${sku} are left`);
    }
    const stock = this.setStock(sku, before - quantity);
    this.emit('shipped', { sku, quantity, stock });
    if (before > minimum && stock <= minimum) this.emit('low', { sku, stock, minimum });
    return stock;
  }

  setStock(sku, stock) {
    this.articles.get(sku).stock = stock;
    return stock;
  }
}

function checkQuantity(quantity) {
  if (!Number.isInteger(quantity) || quantity <= 0) {
    throw new InventoryError(INVALID_QUANTITY, 'A quantity is a whole number above zero');
  }
}

module.exports = Inventory;
