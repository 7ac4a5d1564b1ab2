'use strict';

const { expect } = require('chai');

const documents = require('../store/documents');
const { BOUNDARY, PNG, body, download, field, file, part, send, sendBytes } = require('./form');

describe('Forms', () => {
  beforeEach(() => documents.clear());

  it('keep every byte of a file', async () => {
    const every = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const lookalikes = `\r\n\r\n--${BOUNDARY.slice(0, -1)}\r\n--\r\n${BOUNDARY}\n--${BOUNDARY}\n\r\n`;
    const bytes = Buffer.concat([PNG, every, Buffer.from(lookalikes)]);
    expect((await send(field('title', 'Bytes'), file(bytes))).body.size).to.equal(bytes.length);
    const response = await download(1);
    expect(response.body.equals(bytes)).to.equal(true);
  });

  it('may be written in other ways', async () => {
    const title = part(['content-type: text/plain; charset=utf-8', 'CONTENT-DISPOSITION: form-data; name=title'], 'Übung 1');
    const scan = part(['Content-Disposition: form-data; filename="Prüfung; Teil 1.png"; name="file"'], PNG);
    const bytes = Buffer.concat([Buffer.from('A preamble\r\n'), body([scan, title], 'a b=c'), Buffer.from('An epilogue')]);
    const response = await sendBytes(bytes, 'Multipart/Form-Data; charset=utf-8; boundary="a b=c"');
    expect(response.status).to.equal(201);
    expect(response.body).to.include({ title: 'Übung 1', name: 'Prüfung; Teil 1.png', size: PNG.length });
  });

  it('name files without their folders', async () => {
    const names = { '../../etc/passwd.png': 'passwd.png', 'C:\\scans\\a.png': 'a.png', '..': 'document', 'x/': 'document' };
    for (const [sent, kept] of Object.entries(names)) {
      documents.clear();
      const response = await send(field('title', 'A scan'), file(PNG, sent));
      expect([response.status, response.body.name]).to.deep.equal([201, kept]);
    }
  });

  it('are refused where they are broken or incomplete', async () => {
    const whole = body([field('title', 'A scan'), file(PNG)]);
    const malformed = [
      [whole, 'application/octet-stream'],
      [whole, 'multipart/form-data'],
      [whole, 'multipart/form-data; boundary=other'],
      [whole.subarray(0, whole.length - 6)],
      [Buffer.alloc(0)],
      [body([field('title', 'A scan'), part(['Content-Type: image/png'], PNG)])],
    ];
    for (const [bytes, type] of malformed) {
      const response = await sendBytes(bytes, type);
      expect([response.status, response.body]).to.deep.equal([400, { error: 'Malformed form' }]);
    }
    const incomplete = [
      [file(PNG)],
      [field('title', '  '), file(PNG)],
      [field('title', 'A scan')],
      [field('title', 'A scan'), field('file', 'no file')],
      [field('title', 'A scan'), file(PNG), file(PNG)],
    ];
    for (const parts of incomplete) {
      const response = await send(...parts);
      expect([response.status, response.body]).to.deep.equal([400, { error: 'A title and one file are needed' }]);
    }
    expect(documents.all()).to.deep.equal([]);
  });
});
