'use strict';

const Inventory = require('./inventory');
const Journal = require('./journal');
const RestockPlanner = require('./restock-planner');

/** The inventory of these articles, with a planner and a journal that listen to it. */
module.exports = function createService(articles) {
  const inventory = new Inventory(articles);
  const journal = new Journal();
  const planner = new RestockPlanner();
  journal.attach(inventory);
  planner.attach(inventory);
  return { inventory, journal, planner };
};
