// @vitest-environment node
import { pageNumbers } from '../components/Pager.jsx';

describe('Page numbers', () => {
  it('leave out what is far from the page, but never a single number', () => {
    expect(pageNumbers(1, 1)).toEqual([1]);
    expect(pageNumbers(2, 4)).toEqual([1, 2, 3, 4]);
    expect(pageNumbers(1, 6)).toEqual([1, 2, '…', 6]);
    expect(pageNumbers(6, 12)).toEqual([1, '…', 5, 6, 7, '…', 12]);
    expect(pageNumbers(4, 12)).toEqual([1, 2, 3, 4, 5, '…', 12]);
    expect(pageNumbers(9, 12)).toEqual([1, '…', 8, 9, 10, 11, 12]);
    expect(pageNumbers(12, 12)).toEqual([1, '…', 11, 12]);
  });
});
