'use strict';

const crypto = require('crypto');

/** The time and the signatures of a header such as `t=1714737600,v1=4f0a...,v1=77c2...`. */
function parse(header) {
  const pairs = header.split(',').map((part) => {
    const at = part.indexOf('=');
    return [part.slice(0, at).trim(), part.slice(at + 1).trim()];
  });
  const values = (wanted) => pairs.filter(([key]) => key === wanted).map(([, value]) => value);
  return { time: values('t')[0] || '', signatures: values('v1') };
}

function fits(signature, expected) {
  const given = Buffer.from(signature, 'utf8');
  const right = Buffer.from(expected, 'utf8');
  // timingSafeEqual throws where the lengths differ; the length is no secret.
  return given.length === right.length && crypto.timingSafeEqual(given, right);
}

/** Whether a body (a Buffer) was signed with one of the secrets, at about the time `now` (milliseconds). */
function isGenuine({ header, body, secrets, toleranceSeconds, now }) {
  const { time, signatures } = parse(header);
  if (!/^[0-9]{1,12}$/.test(time) || Math.abs(now / 1000 - Number(time)) > toleranceSeconds) return false;
  return secrets.some((secret) => {
    const expected = crypto.createHmac('sha256', secret).update(`${time}.`).update(body).digest('hex');
    return signatures.some((signature) => fits(signature.toLowerCase(), expected));
  });
}

module.exports = { isGenuine };
