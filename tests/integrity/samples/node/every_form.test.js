const test = require('node:test');
const { describe, it } = require('node:test');
const assert = require('node:assert');
test('top', () => { assert.strictEqual(1, 1); });
test('with subtests', async (t) => { await t.test('sub', () => { assert.equal(1, 1); }); });
describe('s', () => { it('inner', async () => { assert.deepEqual([1], [1]); }); it('opts', { timeout: 500 }, () => {}); it.skip('no', () => {}); });
test.describe('d', () => { test.it('x', (t, done) => { setImmediate(done); }); });
