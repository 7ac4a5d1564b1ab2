'use strict';

class RestockPlanner {
  constructor() {
    this.orders = new Map();
  }

  /** The orders that have not been delivered yet, as { sku, quantity }, the oldest first. */
  openOrders() {
    return [...this.orders.values()];
  }
}

module.exports = RestockPlanner;
