/**
 * @jest-environment jsdom
 */
import { describe, expect, it, test } from '@jest/globals';

import { sum } from './sum';
interface Row { a: number; }
const check = (): void => { expect(sum(1, 2)).toBe(3); };
describe('ts', () => {
  it('adds', () => { const r: Row = { a: 1 }; expect(sum(r.a, 2)).toBe(3); });
  it('dom', () => { expect(document.body).not.toBeNull(); expect(sum(1, 1)).toEqual(2); });
  it('by name', check);
  it('done', (done: (error?: string) => void) => { setTimeout(() => { expect(sum(2, 2)).toBe(4); done(); }, 5); });
  it('expr', () => expect(Promise.resolve(3)).resolves.toBe(3));
  it('async', async (): Promise<void> => { expect(await Promise.resolve(3)).toBeGreaterThan(2); });
  it.each([[1, 2], [2, 3]])('table %i', (a: number, b: number) => { expect(sum(a, 1)).toBe(b); });
  test('this', function (this: unknown) { expect(this).not.toBe(5); });
});
