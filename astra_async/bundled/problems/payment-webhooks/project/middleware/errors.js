'use strict';

function notFound(req, res) {
  res.status(404).json({ error: 'Not found' });
}

// Express knows an error handler by its four parameters.
function failed(error, req, res, next) { // eslint-disable-line no-unused-vars
  res.status(error.status || 500).json({ error: error.message });
}

module.exports = { notFound, failed };
