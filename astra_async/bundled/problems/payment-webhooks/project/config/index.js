'use strict';

module.exports = {
  port: Number(process.env.PORT) || 3000,
  bodyLimit: '100kb',
  webhooks: {
    secrets: (process.env.WEBHOOK_SECRETS || '').split(',').filter(Boolean),
    toleranceSeconds: 300,
    retryWaits: [1000, 2000, 4000],
  },
};
