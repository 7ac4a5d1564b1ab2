'use strict';

const { Unavailable } = require('../orders/errors');

/** Processes events, each of them once. */
class Receiver {
  constructor({ orders, wait, retryWaits }) {
    this.wait = wait;
    this.retryWaits = retryWaits;
    this.actions = new Map([
      ['payment.succeeded', ({ order, amount }) => orders.pay(order, amount)],
      ['payment.refunded', ({ order, amount }) => orders.refund(order, amount)],
    ]);
    this.processed = new Set();
  }

  /** What became of an event: processed, duplicate or ignored. Rejects as the orders do. */
  async receive({ id, type, data }) {
    const action = this.actions.get(type);
    if (!action) return 'ignored';
    if (this.processed.has(id)) return 'duplicate';
    this.processed.add(id);
    await this.repeat(() => action(data));
    return 'processed';
  }

  async repeat(call) {
    for (const ms of this.retryWaits) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
      }
      await this.wait(ms);
    }
    return call();
  }
}

module.exports = Receiver;
