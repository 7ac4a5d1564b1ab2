'use strict';

const request = require('supertest');

const app = require('../app');

const BOUNDARY = 'xYzZY';
const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0xfe, 0x0d, 0x0a]);
const PDF = Buffer.from('%PDF-1.7\nA contract\n');

/** The bytes of one part: its header lines, and its content. */
function part(headers, content) {
  return Buffer.concat([Buffer.from(`${headers.join('\r\n')}\r\n\r\n`), Buffer.from(content)]);
}

const field = (name, text) => part([`Content-Disposition: form-data; name="${name}"`], text);

const file = (content, filename = 'scan.png') =>
  part(
    [`Content-Disposition: form-data; name="file"; filename="${filename}"`, 'Content-Type: text/plain'],
    content,
  );

/** A whole body of these parts. */
function body(parts, boundary = BOUNDARY) {
  const lines = parts.flatMap((one) => [Buffer.from(`--${boundary}\r\n`), one, Buffer.from('\r\n')]);
  return Buffer.concat([...lines, Buffer.from(`--${boundary}--\r\n`)]);
}

/** Sends bytes as a form. */
function sendBytes(bytes, type = `multipart/form-data; boundary=${BOUNDARY}`) {
  return request(app).post('/documents').set('Content-Type', type).send(bytes);
}

const send = (...parts) => sendBytes(body(parts));

/** The content of a stored document, as a Buffer. */
function download(id) {
  return request(app).get(`/documents/${id}/content`).buffer(true).parse((response, done) => {
    const chunks = [];
    response.on('data', (chunk) => chunks.push(chunk));
    response.on('end', () => done(null, Buffer.concat(chunks)));
  });
}

module.exports = { BOUNDARY, PDF, PNG, body, download, field, file, part, send, sendBytes };
