'use strict';

const { UnknownOrder, Unavailable } = require('../orders/errors');

/** Processes events, each of them once. */
class Receiver {}

module.exports = Receiver;
