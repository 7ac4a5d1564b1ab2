'use strict';

const crypto = require('crypto');

/**
 * The signature of a delivery: HMAC-SHA256 over `<time>.<body>`, in lower-case hexadecimal digits.
 *
 * @param {{secret: string, time: string | number, body: string | Buffer}} delivery
 */
function sign({ secret, time, body }) {
  return crypto.createHmac('sha256', secret).update(`${time}.`).update(body).digest('hex');
}

module.exports = { sign };
