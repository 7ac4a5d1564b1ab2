'use strict';

const { expect } = require('chai');
const request = require('supertest');

const app = require('../app');
const documents = require('../store/documents');
const { PDF, PNG, download, field, file, send } = require('./form');

const get = (path) => request(app).get(path);

describe('Documents', () => {
  beforeEach(() => documents.clear());

  it('stores what a browser sends and answers with what is known about it', async () => {
    const response = await request(app)
      .post('/documents')
      .field('title', '  Passport ')
      .attach('file', PNG, { filename: 'passport.jpg', contentType: 'image/jpeg' });
    expect(response.status).to.equal(201);
    const record = { id: 1, title: 'Passport', name: 'passport.jpg', size: PNG.length, type: 'image/png' };
    expect(response.body).to.deep.equal(record);
    expect((await get('/documents/1')).body).to.deep.equal(record);
    await send(field('title', 'Contract'), file(PDF, 'contract.pdf'));
    expect((await get('/documents')).body.map(({ title }) => title)).to.deep.equal(['Passport', 'Contract']);
    for (const path of ['/documents/3', '/documents/3/content', '/documents/one']) {
      const none = await get(path);
      expect([none.status, none.body]).to.deep.equal([404, { error: 'Document not found' }]);
    }
  });

  it('knows a type by the first bytes alone', async () => {
    const jpeg = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0x00]);
    for (const [bytes, type] of [[PDF, 'application/pdf'], [jpeg, 'image/jpeg'], [PNG, 'image/png']]) {
      const response = await send(field('title', 'A scan'), file(bytes, 'scan.txt'));
      expect([response.status, response.body.type]).to.deep.equal([201, type]);
    }
    for (const bytes of ['<svg></svg>', '', ' %PDF-1.7', PNG.subarray(0, 7)]) {
      const response = await send(field('title', 'A scan'), file(bytes, 'scan.png'));
      expect(response.status).to.equal(415);
      expect(response.body).to.deep.equal({ error: 'Unsupported file type' });
    }
    expect(documents.all()).to.have.lengthOf(3);
  });

  it('takes files of up to 64 KB', async () => {
    const sized = (length) => Buffer.concat([PDF, Buffer.alloc(length - PDF.length, 'x')]);
    const tooLarge = await send(field('title', 'Book'), file(sized(65537)));
    expect(tooLarge.status).to.equal(413);
    expect(tooLarge.body).to.deep.equal({ error: 'File too large' });
    const largest = await send(field('title', 'Book'), file(sized(65536)));
    expect([largest.status, largest.body.id, largest.body.size]).to.deep.equal([201, 1, 65536]);
  });

  it('hands the content out as a download', async () => {
    await send(field('title', 'Passport'), file(PNG, 'Prüfung 1.png'));
    const response = await download(1);
    expect(response.status).to.equal(200);
    expect(response.headers['content-type']).to.equal('image/png');
    expect(response.headers['content-disposition']).to.equal('attachment; filename="Pr_fung 1.png"');
    expect(response.headers['x-content-type-options']).to.equal('nosniff');
    expect(response.body.equals(PNG)).to.equal(true);
  });
});
