'use strict';

const { expect } = require('chai');
const request = require('supertest');

const app = require('../app');
const products = require('../store/products');

const LAMP = { name: 'Desk lamp', price: 30, mrp: 45, stock: 7 };
const CHAIR = { name: 'Chair', price: 80, mrp: 60, stock: 0 };

const post = (body) => request(app).post('/products').send(body);
const patch = (id) => request(app).patch(`/products/${id}`);
const list = async () => (await request(app).get('/products')).body;

describe('Product API', () => {
  beforeEach(() => products.clear());

  it('still answers with the state of the service at /', async () => {
    const response = await request(app).get('/');
    expect(response.status).to.equal(200);
    expect(response.body).to.deep.equal({ service: 'product-api', status: 'up' });
  });

  it('creates an unpublished product from the four fields alone', async () => {
    const response = await post(LAMP);
    expect(response.status).to.equal(201);
    expect(response.body).to.deep.equal({ ...LAMP, id: 1, isPublished: false });
    const more = await post({ ...LAMP, id: 40, isPublished: true, rating: 5 });
    expect(more.body).to.deep.equal({ ...LAMP, id: 2, isPublished: false });
    expect((await list()).every((product) => !product.isPublished)).to.equal(true);
  });

  it('refuses an invalid product and stores nothing', async () => {
    const invalid = [
      { ...LAMP, name: '   ' },
      { ...LAMP, name: undefined },
      { ...LAMP, price: -1 },
      { ...LAMP, mrp: '45' },
      { ...LAMP, stock: 1.5 },
    ];
    for (const body of invalid) {
      const response = await post(body);
      expect(response.status, JSON.stringify(body)).to.equal(400);
      expect(response.body).to.deep.equal({ error: 'Invalid product' });
    }
    const free = await post({ ...LAMP, price: 0, stock: 0 });
    expect(free.status).to.equal(201);
    expect(await list()).to.have.lengthOf(1);
  });

  it('lists products by ascending id and finds one by its id', async () => {
    await post(LAMP);
    await post(CHAIR);
    const all = await request(app).get('/products');
    expect(all.status).to.equal(200);
    expect(all.body.map((product) => product.name)).to.deep.equal(['Desk lamp', 'Chair']);
    const one = await request(app).get('/products/2');
    expect(one.status).to.equal(200);
    expect(one.body.name).to.equal('Chair');
    const none = await request(app).get('/products/3');
    expect(none.status).to.equal(404);
    expect(none.body).to.deep.equal({ error: 'Product not found' });
  });

  it('publishes a product, the last item at its MRP too', async () => {
    await post(LAMP);
    await post({ ...LAMP, price: 45, stock: 1 });
    const response = await patch(1);
    expect(response.status).to.equal(200);
    expect(response.body).to.deep.equal({ ...LAMP, id: 1, isPublished: true });
    expect((await list()).filter((product) => product.isPublished).map(({ id }) => id)).to.deep.equal([1]);
    expect((await patch(2)).status).to.equal(200);
    const none = await patch(3);
    expect([none.status, none.body]).to.deep.equal([404, { error: 'Product not found' }]);
  });

  it('refuses to publish and names every rule that is broken', async () => {
    await post(CHAIR);
    await post({ ...CHAIR, stock: 2 });
    const both = await patch(1);
    expect(both.status).to.equal(422);
    expect(both.body).to.deep.equal({
      errors: ['MRP must not be below the price', 'Stock must be above zero'],
    });
    const one = await patch(2);
    expect(one.status).to.equal(422);
    expect(one.body).to.deep.equal({ errors: ['MRP must not be below the price'] });
    expect((await list()).some((product) => product.isPublished)).to.equal(false);
  });

  it('answers PUT and DELETE with 405 and changes nothing', async () => {
    await post(LAMP);
    for (const method of ['put', 'delete']) {
      const response = await request(app)[method]('/products/1').send({ price: 1 });
      expect(response.status).to.equal(405);
      expect(response.headers.allow).to.equal('GET, PATCH');
    }
    expect(await list()).to.deep.equal([{ ...LAMP, id: 1, isPublished: false }]);
  });
});
