'use strict';

const { createHash } = require('crypto');
const { expect } = require('chai');
const request = require('supertest');

const app = require('../app');
const documents = require('../store/documents');
const { PDF, PNG, download, field, file, send } = require('./form');

const get = (path) => request(app).get(path);
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

describe('Documents', () => {
  beforeEach(() => documents.clear());

  it('still answers with the state of the service at /', async () => {
    const response = await get('/');
    expect(response.status).to.equal(200);
    expect(response.body).to.deep.equal({ service: 'document-drop', status: 'up' });
  });

  it('stores what a browser sends and answers with what is known about it', async () => {
    const response = await request(app)
      .post('/documents')
      .field('title', '  Passport ')
      .field('tags', 'Travel, id , ,travel')
      .attach('file', PNG, { filename: 'passport.jpg', contentType: 'image/jpeg' });
    expect(response.status).to.equal(201);
    expect(response.body).to.deep.equal({
      id: 1,
      title: 'Passport',
      tags: ['travel', 'id'],
      name: 'passport.jpg',
      size: PNG.length,
      type: 'image/png',
      sha256: sha256(PNG),
    });
    const again = await get('/documents/1');
    expect(again.status).to.equal(200);
    expect(again.body).to.deep.equal(response.body);
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

  it('stores the same content only once, until it is deleted', async () => {
    await send(field('title', 'Contract'), file(PDF));
    await send(field('title', 'Passport'), file(PNG));
    const twin = await send(field('title', 'Another title'), file(PNG, 'other.png'));
    expect(twin.status).to.equal(409);
    expect(twin.body).to.deep.equal({ error: 'Already stored', id: 2 });
    expect((await request(app).delete('/documents/2')).status).to.equal(204);
    expect((await request(app).delete('/documents/2')).status).to.equal(404);
    const back = await send(field('title', 'Another title'), file(PNG));
    expect([back.status, back.body.id]).to.deep.equal([201, 3]);
  });

  it('lists documents, those with a tag too, and knows what it does not have', async () => {
    await send(field('title', 'Contract'), field('tags', 'Work,home'), file(PDF));
    await send(field('title', 'Passport'), field('tags', 'homework'), file(PNG));
    const titles = async (query) => (await get(`/documents${query}`)).body.map(({ title }) => title);
    expect(await titles('')).to.deep.equal(['Contract', 'Passport']);
    expect(await titles('?tag=WORK')).to.deep.equal(['Contract']);
    expect(await titles('?tag=none')).to.deep.equal([]);
    expect((await get('/documents')).body[1]).to.include({ id: 2, type: 'image/png' });
    for (const path of ['/documents/3', '/documents/3/content', '/documents/one']) {
      const response = await get(path);
      expect(response.status).to.equal(404);
      expect(response.body).to.deep.equal({ error: 'Document not found' });
    }
  });

  it('hands the content out as a download that can be cached', async () => {
    await send(field('title', 'Passport'), file(PNG, 'Prüfung 1.png'));
    const response = await download(1);
    expect(response.status).to.equal(200);
    expect(response.headers['content-type']).to.equal('image/png');
    expect(response.headers['content-disposition']).to.equal('attachment; filename="Pr_fung 1.png"');
    expect(response.headers['x-content-type-options']).to.equal('nosniff');
    expect(response.headers.etag).to.equal(`"${sha256(PNG)}"`);
    const cached = await get('/documents/1/content').set('If-None-Match', `"${sha256(PNG)}"`);
    expect(cached.status).to.equal(304);
    const changed = await get('/documents/1/content').set('If-None-Match', `"${sha256(PDF)}"`);
    expect(changed.status).to.equal(200);
  });
});
