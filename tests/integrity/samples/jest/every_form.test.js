'use strict';
const helper = () => { expect(2).toBe(2); };
describe('js', () => {
  beforeEach(() => { jest.useRealTimers(); });
  it('string', () => { expect('abc').toMatch('b'); expect('it\'s').toBe("it's"); });
  it('object', () => { expect({ a: [1, 2] }).toEqual({ a: [1, 2] }); expect.assertions(2); expect([1]).toContain(1); });
  it('throws', () => { expect(() => { throw new Error('x'); }).toThrow('x'); });
  it('mock', () => { const f = jest.fn(); f(1); expect(f).toHaveBeenCalledWith(1); expect(f).toHaveBeenCalledTimes(1); });
  it('timers', () => { jest.useFakeTimers(); let n = 0; setTimeout(() => { n += 1; }, 1000); jest.advanceTimersByTime(1000); expect(n).toBe(1); });
  it('helper', helper);
  it('early return', async function () { if (this) return; expect(1).toBe(1); });
  it.skip('skipped', () => {});
  it.todo('planned');
  it.failing('failing', () => { expect(1).toBe(2); });
  describe.each([[1], [2]])('each %i', (n) => { it('inner', () => { expect(n).toBeLessThan(3); }); });
  it.each`
    a    | b
    ${1} | ${2}
  `('$a gives $b', ({ a, b }) => { expect(a + 1).toBe(b); });
  [1, 2].forEach((n) => test(`loop ${n}`, () => expect(n).toBeTruthy()));
  for (const n of [1, 2]) { it('again' + n, () => { expect(n).toBeDefined(); }); }
  it.concurrent('concurrent', async () => { expect(1).toBe(1); });
  describe('nested "quotes" & <tags>', () => { test(`template`, () => void expect(null).toBeNull()); });
});
describe.skip('whole', () => { it('not', () => {}); });
