'use strict';

/** The order does not exist, and asking again will not change that. */
class UnknownOrder extends Error {
  constructor(id) {
    super(`There is no order ${id}`);
    this.name = 'UnknownOrder';
  }
}

/** The orders cannot be reached at the moment. */
class Unavailable extends Error {
  constructor() {
    super('The orders cannot be reached');
    this.name = 'Unavailable';
  }
}

module.exports = { UnknownOrder, Unavailable };
