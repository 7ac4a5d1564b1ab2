'use strict';

// Whether a delivery is genuine is decided here.

module.exports = {};
