'use strict';

const { UnknownOrder } = require('./errors');

/** Orders in memory; amounts are whole cents. What it returns are copies. */
class Orders {
  constructor() {
    this.records = new Map();
  }

  add({ id, amount }) {
    this.records.set(id, { id, amount, paid: 0 });
    return this.find(id);
  }

  /** The order with this id, or null. */
  find(id) {
    const order = this.records.get(id);
    return order ? { ...order } : null;
  }

  /** Adds an amount to what was paid. Rejects with UnknownOrder. */
  async pay(id, amount) {
    this.#record(id).paid += amount;
  }

  /** Takes an amount from what was paid. Rejects with UnknownOrder. */
  async refund(id, amount) {
    this.#record(id).paid -= amount;
  }

  #record(id) {
    const order = this.records.get(id);
    if (!order) throw new UnknownOrder(id);
    return order;
  }
}

module.exports = Orders;
