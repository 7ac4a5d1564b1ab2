'use strict';

/**
 * Splits the body of a multipart/form-data request (RFC 7578) into its parts.
 *
 * @param {Buffer} body
 * @param {string} boundary as the Content-Type header names it
 * @returns {{name: string, filename: string | undefined, data: Buffer}[]}
 */
function parseMultipart(body, boundary) {
  throw new Error('not written yet');
}

module.exports = { parseMultipart };
