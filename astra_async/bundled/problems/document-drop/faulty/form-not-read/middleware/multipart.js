'use strict';

class MalformedForm extends Error {}

/** The value and the parameters of a header such as `form-data; name="a"; filename=b`. */
function parseHeader(line) {
  const [value] = line.split(';', 1);
  const parameters = {};
  for (const [, name, quoted, bare] of line.matchAll(/;\s*([\w*-]+)=(?:"([^"]*)"|([^\s;]*))/g)) {
    parameters[name.toLowerCase()] = quoted === undefined ? bare : quoted;
  }
  return { value: value.trim().toLowerCase(), parameters };
}

function parsePart(bytes) {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) throw new MalformedForm();
  const lines = bytes.subarray(0, end).toString().split('\r\n');
  const disposition = lines.find((line) => /^content-disposition:/i.test(line)) || '';
  const { parameters } = parseHeader(disposition);
  if (!parameters.name) throw new MalformedForm();
  return { name: parameters.name, filename: parameters.filename, data: bytes.subarray(end + 4) };
}

/**
 * Splits the body of a multipart/form-data request (RFC 7578) into its parts.
 *
 * @param {Buffer} body
 * @param {string} boundary as the Content-Type header names it
 * @returns {{name: string, filename: string | undefined, data: Buffer}[]}
 */
function parseMultipart(body, boundary) {
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  // A delimiter at the very beginning has no line end before it; with one, all are alike.
  const bytes = Buffer.concat([Buffer.from('\r\n'), body]);
  const parts = [];
  let start = bytes.indexOf(delimiter);
  while (start >= 0) {
    start += delimiter.length;
    if (bytes.subarray(start, start + 2).toString() === '--') return parts;
    const end = bytes.indexOf(delimiter, start);
    if (end < 0) break;
    parts.push(parsePart(bytes.subarray(bytes.indexOf('\r\n', start) + 2, end)));
    start = end;
  }
  throw new MalformedForm();
}

/** Express middleware: `req.parts`, or 400. */
function readForm(req, res, next) {
  const { value, parameters } = parseHeader(req.get('Content-Type') || '');
  try {
    if (value !== 'multipart/form-data' || !parameters.boundary) throw new MalformedForm();
    req.parts = parseMultipart(Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0), parameters.boundary);
  } catch (error) {
    if (!(error instanceof MalformedForm)) return next(error);
    return res.status(400).json({ error: 'Malformed form' });
  }
  return next();
}

module.exports = { parseMultipart, readForm };
