'use strict';

module.exports = {
  port: Number(process.env.PORT) || 3000,
  bodyLimit: '100kb',
  webhooks: {
    secret: process.env.WEBHOOK_SECRET || 'whsec_development',
    toleranceSeconds: 300,
  },
};
