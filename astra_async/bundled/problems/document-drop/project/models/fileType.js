'use strict';

/** The first bytes of the files that are taken, by media type. */
const SIGNATURES = {
  'image/png': Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  'image/jpeg': Buffer.from([0xff, 0xd8, 0xff]),
  'application/pdf': Buffer.from('%PDF-'),
};

/** The media type of these bytes, or undefined. */
function typeOf(bytes) {
  return Object.keys(SIGNATURES).find((type) => bytes.subarray(0, SIGNATURES[type].length).equals(SIGNATURES[type]));
}

module.exports = { typeOf };
