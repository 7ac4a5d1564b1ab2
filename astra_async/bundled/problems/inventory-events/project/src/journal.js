'use strict';

const EVENTS = ['received', 'shipped', 'low'];

/** Records every event of an inventory from the moment it is attached. */
class Journal {
  constructor() {
    this.entries = [];
  }

  attach(inventory) {
    for (const event of EVENTS) {
      inventory.on(event, (details) => this.entries.push({ event, ...details }));
    }
  }
}

module.exports = Journal;
