'use strict';

/** Products in memory with ascending ids. What it returns are copies: change one through `update`. */
class Collection {
  constructor() {
    this.clear();
  }

  /** Forgets every record; the next id is 1 again. */
  clear() {
    this.records = new Map();
    this.nextId = 1;
  }

  /** Stores the record under the next id and returns it, with its `id`. */
  insert(record) {
    const id = this.nextId;
    this.nextId += 1;
    this.records.set(id, { ...record, id });
    return { ...this.records.get(id) };
  }

  /** All records, those inserted last first. */
  all() {
    return [...this.records.values()].reverse().map((record) => ({ ...record }));
  }

  /** The record with this id (a number), or null. */
  find(id) {
    const record = this.records.get(id);
    return record ? { ...record } : null;
  }

  /** Changes fields of a record and returns it, or null where there is none. */
  update(id, changes) {
    const record = this.records.get(id);
    if (!record) return null;
    Object.assign(record, changes, { id });
    return { ...record };
  }
}

module.exports = new Collection();
