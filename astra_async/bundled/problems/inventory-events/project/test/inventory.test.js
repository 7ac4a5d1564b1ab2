'use strict';

const { expect } = require('chai');

const Inventory = require('../src/inventory');
const RestockPlanner = require('../src/restock-planner');

const ARTICLES = [
  { sku: 'LAMP', stock: 12, minimum: 5, maximum: 20 },
  { sku: 'CHAIR', stock: 4, minimum: 1, maximum: 6 },
];

function watched() {
  const inventory = new Inventory(ARTICLES);
  const events = [];
  for (const name of ['received', 'shipped', 'low']) {
    inventory.on(name, (details) => events.push([name, details]));
  }
  return { inventory, events, names: () => events.map(([name]) => name) };
}

describe('Inventory', () => {
  it('tells what was received and shipped, after the stock has changed', () => {
    const inventory = new Inventory(ARTICLES);
    const seen = [];
    for (const name of ['received', 'shipped']) {
      inventory.on(name, (details) => seen.push([name, details, inventory.stock('LAMP')]));
    }
    expect(inventory.receive('LAMP', 3)).to.equal(15);
    expect(inventory.ship('LAMP', 2)).to.equal(13);
    expect(seen).to.deep.equal([
      ['received', { sku: 'LAMP', quantity: 3, stock: 15 }, 15],
      ['shipped', { sku: 'LAMP', quantity: 2, stock: 13 }, 13],
    ]);
    expect(ARTICLES[0].stock).to.equal(12);
  });

  it('refuses impossible movements without an event', () => {
    const { inventory, events } = watched();
    const refusal = (movement) => {
      try {
        movement();
      } catch (error) {
        return error.code;
      }
      return 'none';
    };
    expect(refusal(() => inventory.ship('SOFA', 1))).to.equal('UNKNOWN_SKU');
    expect(refusal(() => inventory.ship('CHAIR', 5))).to.equal('INSUFFICIENT_STOCK');
    for (const quantity of [0, -1, 1.5, '2', undefined]) {
      expect(refusal(() => inventory.receive('LAMP', quantity))).to.equal('INVALID_QUANTITY');
      expect(refusal(() => inventory.ship('LAMP', quantity))).to.equal('INVALID_QUANTITY');
    }
    expect([inventory.stock('LAMP'), inventory.stock('CHAIR')]).to.deep.equal([12, 4]);
    expect(events).to.deep.equal([]);
    expect(inventory.ship('CHAIR', 4)).to.equal(0);
  });

  it('warns once when the stock falls to the minimum', () => {
    const { inventory, events, names } = watched();
    inventory.ship('LAMP', 6);
    expect(names()).to.deep.equal(['shipped']);
    inventory.ship('LAMP', 1);
    expect(names()).to.deep.equal(['shipped', 'shipped', 'low']);
    expect(events[2][1]).to.deep.equal({ sku: 'LAMP', stock: 5, minimum: 5 });
    inventory.ship('LAMP', 1);
    expect(names()).to.deep.equal(['shipped', 'shipped', 'low', 'shipped']);
  });

  it('warns again only after the stock was above the minimum', () => {
    const { inventory, names } = watched();
    const warnings = () => names().filter((name) => name === 'low').length;
    inventory.ship('LAMP', 9);
    inventory.receive('LAMP', 2);
    inventory.ship('LAMP', 1);
    expect(warnings()).to.equal(1);
    inventory.receive('LAMP', 2);
    inventory.ship('LAMP', 1);
    expect(warnings()).to.equal(2);
  });
});

describe('RestockPlanner', () => {
  it('orders up to the maximum, with one open order for each article', () => {
    const inventory = new Inventory(ARTICLES);
    const planner = new RestockPlanner();
    planner.attach(inventory);
    inventory.ship('CHAIR', 4);
    inventory.ship('LAMP', 8);
    inventory.emit('low', { sku: 'LAMP', stock: 4, minimum: 5 });
    expect(planner.openOrders()).to.deep.equal([
      { sku: 'CHAIR', quantity: 6 },
      { sku: 'LAMP', quantity: 16 },
    ]);
  });

  it('closes an order with the delivery and listens until it is detached', () => {
    const inventory = new Inventory(ARTICLES);
    const planner = new RestockPlanner();
    planner.attach(inventory);
    inventory.ship('CHAIR', 3);
    inventory.ship('LAMP', 8);
    inventory.receive('CHAIR', 5);
    expect(planner.openOrders()).to.deep.equal([{ sku: 'LAMP', quantity: 16 }]);
    planner.detach();
    inventory.receive('LAMP', 16);
    inventory.ship('CHAIR', 6);
    expect(planner.openOrders()).to.deep.equal([{ sku: 'LAMP', quantity: 16 }]);
    expect(inventory.listenerCount('low') + inventory.listenerCount('received')).to.equal(0);
  });
});
