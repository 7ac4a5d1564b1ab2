'use strict';

class RestockPlanner {
  constructor() {
    this.orders = new Map();
    this.inventory = null;
  }

  /** The orders that have not been delivered yet, as { sku, quantity }, the oldest first. */
  openOrders() {
    return [...this.orders.values()];
  }

  /** Begins to listen to an inventory. */
  attach(inventory) {
    this.inventory = inventory;
    inventory.on('low', this.onLow.bind(this));
    inventory.on('received', this.onReceived.bind(this));
  }

  /** Ends the listening; open orders stay. */
  detach() {
    this.inventory.off('low', this.onLow);
    this.inventory.off('received', this.onReceived);
    this.inventory = null;
  }

  onLow({ sku, stock }) {
    const { maximum } = this.inventory.article(sku);
    const open = this.orders.get(sku)?.quantity ?? 0;
    this.orders.set(sku, { sku, quantity: open + maximum - stock });
  }

  onReceived({ sku }) {
    this.orders.delete(sku);
  }
}

module.exports = RestockPlanner;
