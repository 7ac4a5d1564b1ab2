'use strict';

const Collection = require('./collection');

module.exports = new Collection();
