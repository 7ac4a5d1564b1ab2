'use strict';

module.exports = {
  port: Number(process.env.PORT) || 3000,
  // The longest request that is read at all, and the longest file that is stored, in bytes.
  bodyLimit: 1024 * 1024,
  fileLimit: 64 * 1024,
};
