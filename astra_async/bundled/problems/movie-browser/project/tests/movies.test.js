import { mount } from '@vue/test-utils';

import App from '../src/App.vue';

const MOVIES = [
  ['Alpha', 'Drama'],
  ['Bravo', 'Comedy'],
  ['Charlie', 'Drama'],
  ['Delta', 'Western'],
  ['Echo', 'Drama'],
  ['Foxtrot', 'Comedy'],
  ['Golf', 'Drama'],
  ['Hotel', 'Animation'],
  ['India', 'Drama'],
].map(([title, genre], index) => ({ id: 10 + index, title, genre, year: 1950 + index }));

let page;
const get = (id) => page.find(`[data-testid="${id}"]`);
const titles = () => page.findAll('[data-testid="title"]').map((title) => title.text());
const click = (id) => get(id).trigger('click');
const open = () => {
  page = mount(App, { props: { movies: MOVIES } });
};

describe('Movies', () => {
  beforeEach(() => {
    localStorage.clear();
    open();
  });

  it('begins with the first four movies', () => {
    expect(titles()).toEqual(['Alpha', 'Bravo', 'Charlie', 'Delta']);
    expect(get('page-info').text()).toBe('Page 1 of 3');
  });

  it('goes from page to page and stops at the ends', async () => {
    expect(get('previous').element.disabled).toBe(true);
    await click('next');
    expect(titles()).toEqual(['Echo', 'Foxtrot', 'Golf', 'Hotel']);
    expect(get('previous').element.disabled).toBe(false);
    await click('next');
    expect(titles()).toEqual(['India']);
    expect(get('page-info').text()).toBe('Page 3 of 3');
    expect(get('next').element.disabled).toBe(true);
    await click('previous');
    expect(get('page-info').text()).toBe('Page 2 of 3');
  });

  it('offers every genre once, in alphabetical order', () => {
    const options = get('genre').findAll('option');
    expect(options.map((option) => option.text())).toEqual([
      'All',
      'Animation',
      'Comedy',
      'Drama',
      'Western',
    ]);
  });

  it('shows one genre from its first page on', async () => {
    await click('next');
    await click('next');
    await get('genre').setValue('Drama');
    expect(titles()).toEqual(['Alpha', 'Charlie', 'Echo', 'Golf']);
    expect(get('page-info').text()).toBe('Page 1 of 2');
    await get('genre').setValue('Comedy');
    expect(titles()).toEqual(['Bravo', 'Foxtrot']);
    expect(get('page-info').exists()).toBe(false);
    await get('genre').setValue('');
    expect(get('page-info').text()).toBe('Page 1 of 3');
  });

  it('marks favourites and counts them', async () => {
    expect(get('favourite-count').text()).toBe('0');
    expect(get('favourite-11').text()).toBe('☆');
    expect(get('favourite-11').attributes('aria-pressed')).toBe('false');
    await click('favourite-11');
    await click('favourite-13');
    expect(get('favourite-11').text()).toBe('★');
    expect(get('favourite-11').attributes('aria-pressed')).toBe('true');
    expect(get('favourite-10').text()).toBe('☆');
    expect(get('favourite-count').text()).toBe('2');
    await click('favourite-11');
    expect(get('favourite-count').text()).toBe('1');
  });

  it('remembers favourites until the next visit', async () => {
    await click('favourite-13');
    await click('favourite-10');
    expect(JSON.parse(localStorage.getItem('favourites'))).toEqual([13, 10]);
    open();
    expect(get('favourite-count').text()).toBe('2');
    expect(get('favourite-10').text()).toBe('★');
    for (const broken of ['[13', '{"a": 1}', 'null']) {
      localStorage.setItem('favourites', broken);
      open();
      expect(get('favourite-count').text()).toBe('0');
      expect(titles()).toHaveLength(4);
    }
  });

  it('shows only favourites of the chosen genre, on pages that there are', async () => {
    for (const id of [10, 11, 12, 13]) await click(`favourite-${id}`);
    await click('next');
    await click('favourite-14');
    await click('previous');
    await get('only-favourites').setValue(true);
    await click('next');
    expect(titles()).toEqual(['Echo']);
    await click('favourite-14');
    expect(titles()).toEqual(['Alpha', 'Bravo', 'Charlie', 'Delta']);
    expect(get('page-info').exists()).toBe(false);
    await get('genre').setValue('Drama');
    expect(titles()).toEqual(['Alpha', 'Charlie']);
    await get('genre').setValue('Animation');
    expect(titles()).toEqual([]);
    await get('only-favourites').setValue(false);
    expect(titles()).toEqual(['Hotel']);
  });
});
