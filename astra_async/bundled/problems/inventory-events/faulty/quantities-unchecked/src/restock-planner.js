'use strict';

class RestockPlanner {
  constructor() {
    this.orders = new Map();
    this.inventory = null;
    this.onLow = this.onLow.bind(this);
    this.onReceived = this.onReceived.bind(this);
  }

  /** The orders that have not been delivered yet, as { sku, quantity }, the oldest first. */
  openOrders() {
    return [...this.orders.values()];
  }

  /** Begins to listen to an inventory. */
  attach(inventory) {
    this.inventory = inventory;
    inventory.on('low', this.onLow);
    inventory.on('received', this.onReceived);
  }

  /** Ends the listening; open orders stay. */
  detach() {
    this.inventory.off('low', this.onLow);
    this.inventory.off('received', this.onReceived);
    this.inventory = null;
  }

  onLow({ sku, stock }) {
    if (this.orders.has(sku)) return;
    const { maximum } = this.inventory.article(sku);
    this.orders.set(sku, { sku, quantity: maximum - stock });
  }

  onReceived({ sku }) {
    this.orders.delete(sku);
  }
}

module.exports = RestockPlanner;
