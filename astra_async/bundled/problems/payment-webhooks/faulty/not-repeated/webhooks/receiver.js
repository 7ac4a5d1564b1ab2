'use strict';

/** Processes events, each of them once. */
class Receiver {
  constructor({ orders }) {
    this.actions = new Map([
      ['payment.succeeded', ({ order, amount }) => orders.pay(order, amount)],
      ['payment.refunded', ({ order, amount }) => orders.refund(order, amount)],
    ]);
    this.processed = new Set();
    this.running = new Map();
  }

  /** What became of an event: processed, duplicate or ignored. Rejects as the orders do. */
  async receive({ id, type, data }) {
    const action = this.actions.get(type);
    if (!action) return 'ignored';
    if (this.processed.has(id)) return 'duplicate';
    if (this.running.has(id)) {
      await this.running.get(id);
      return 'duplicate';
    }
    const work = action(data);
    this.running.set(id, work);
    try {
      await work;
      this.processed.add(id);
    } finally {
      this.running.delete(id);
    }
    return 'processed';
  }

}

module.exports = Receiver;
