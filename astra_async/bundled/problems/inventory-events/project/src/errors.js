'use strict';

/** A movement of goods that is impossible; `code` says why. */
class InventoryError extends Error {
  constructor(code, message) {
    super(message);
    this.name = 'InventoryError';
    this.code = code;
  }
}

module.exports = {
  InventoryError,
  UNKNOWN_SKU: 'UNKNOWN_SKU',
  INVALID_QUANTITY: 'INVALID_QUANTITY',
  INSUFFICIENT_STOCK: 'INSUFFICIENT_STOCK',
};
