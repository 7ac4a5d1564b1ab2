describe('j', function () {
  it('a', function () { expect(1).toBe(1); expect([1]).toContain(1); });
  it('b', function (done) { setTimeout(function () { expect(1).toEqual(1); done(); }, 1); });
  it('c', async function () { await expectAsync(Promise.resolve(1)).toBeResolved(); });
  it('d', () => { expect('x').toMatch(/x/); expect(true).toBeTrue(); });
  xit('e', () => {}); fit; it('pending'); it('self', () => { pending('x'); });
  it('spy', function () { const s = jasmine.createSpy(); s(1); expect(s).toHaveBeenCalledWith(1); });
});
