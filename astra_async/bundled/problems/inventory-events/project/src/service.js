'use strict';

const Inventory = require('./inventory');
const Journal = require('./journal');
const RestockPlanner = require('./restock-planner');

/** The inventory of these articles, with a planner and a journal. */
module.exports = function createService(articles) {
  const inventory = new Inventory(articles);
  const journal = new Journal();
  const planner = new RestockPlanner();
  return { inventory, journal, planner };
};
