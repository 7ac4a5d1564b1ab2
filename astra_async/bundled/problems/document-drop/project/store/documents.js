'use strict';

/** Documents in memory: what is known about them, and their content. */
class DocumentStore {
  constructor() {
    this.clear();
  }

  /** Forgets everything; the next id is 1 again. */
  clear() {
    this.entries = new Map();
    this.nextId = 1;
  }

  /** Stores a record and its content (a Buffer) under the next id and returns the record with its `id`. */
  add(record, content) {
    const id = this.nextId;
    this.nextId += 1;
    this.entries.set(id, { record: { id, ...record }, content });
    return { id, ...record };
  }

  /** All records, lowest id first. */
  all() {
    return [...this.entries.values()].map(({ record }) => ({ ...record }));
  }

  /** `{ record, content }` of this id (a number), or undefined. */
  get(id) {
    return this.entries.get(id);
  }
}

module.exports = new DocumentStore();
