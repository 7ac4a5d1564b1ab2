'use strict';

const documents = require('../store/documents');

module.exports = {
  // The request handlers of /documents belong here.
};
