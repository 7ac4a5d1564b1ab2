'use strict';

const { expect } = require('chai');
const request = require('supertest');

const createApp = require('../app');
const createService = require('../src/service');

const ARTICLES = [{ sku: 'LAMP', stock: 3, minimum: 2, maximum: 10 }];

describe('Warehouse', () => {
  it('plans orders and keeps a journal of what is shipped and delivered', async () => {
    const app = createApp(createService(ARTICLES));
    const shipment = await request(app).post('/articles/LAMP/shipments').send({ quantity: 2 });
    expect(shipment.body).to.deep.equal({ sku: 'LAMP', stock: 1 });
    const orders = await request(app).get('/orders');
    expect(orders.body).to.deep.equal([{ sku: 'LAMP', quantity: 9 }]);
    await request(app).post('/articles/LAMP/deliveries').send({ quantity: 9 });
    expect((await request(app).get('/orders')).body).to.deep.equal([]);
    const journal = await request(app).get('/journal');
    expect(journal.body).to.deep.equal([
      { event: 'shipped', sku: 'LAMP', quantity: 2, stock: 1 },
      { event: 'low', sku: 'LAMP', stock: 1, minimum: 2 },
      { event: 'received', sku: 'LAMP', quantity: 9, stock: 10 },
    ]);
  });
});
