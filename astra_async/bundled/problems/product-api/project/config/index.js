'use strict';

module.exports = {
  port: Number(process.env.PORT) || 3000,
  bodyLimit: '100kb',
};
