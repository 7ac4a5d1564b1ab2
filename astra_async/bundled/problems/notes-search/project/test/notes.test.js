const { createInjector, openPage } = require('./page.js');

const note = (id, title, text, tags, updated, pinned = false) => ({ id, title, text, tags, updated, pinned });
const NOTES = [
  note(1, 'Release plan', 'Build the images, then tell support.', ['work', 'To do'], '2024-03-04T09:30:00Z'),
  note(2, 'Bread', 'Flour, water, salt. No butter!', ['recipes'], '2024-02-11T18:05:00Z', true),
  note(3, 'C++ notes', 'A vector<int> grows by itself (amortised).', ['work', 'code'], '2024-03-09T21:40:00Z'),
  note(4, 'Groceries', 'Bread, BUTTER and <b>salt</b>', ['home', 'to do'], '2024-03-10T08:00:00Z'),
  note(5, 'Postcard codes', 'Support wants $5 a card. 50% off?', ['homework'], '2024-01-30T12:00:00Z', true),
];

let injector;

beforeEach(() => {
  injector = createInjector();
});

describe('Search', () => {
  const ids = (query) => injector.get('$filter')('search')(NOTES, query).map(({ id }) => id);

  it('finds the notes in which every word occurs, wherever and in any case', () => {
    expect(ids('bread')).toEqual([2, 4]);
    expect(ids('butter  Salt')).toEqual([2, 4]);
    expect(ids('home bread')).toEqual([4]);
    expect(ids('SUPPORT card')).toEqual([5]);
    expect(ids('bread vector')).toEqual([]);
    expect(ids('   ')).toEqual([1, 2, 3, 4, 5]);
  });

  it('takes what stands in quotes as one term', () => {
    expect(ids('"tell support"')).toEqual([1]);
    expect(ids('"support tell"')).toEqual([]);
    expect(ids('"Bread, butter" salt')).toEqual([4]);
    expect(ids('"support wants')).toEqual([5]);
  });

  it('leaves out the notes in which a term with a minus occurs', () => {
    expect(ids('salt -home')).toEqual([2]);
    expect(ids('-salt -"the images"')).toEqual([3, 5]);
    expect(ids('butter -bread')).toEqual([]);
  });

  it('finds tags by their whole name', () => {
    expect(ids('tag:home')).toEqual([4]);
    expect(ids('TAG:Work')).toEqual([1, 3]);
    expect(ids('tag:"to do" -tag:work')).toEqual([4]);
    expect(ids('tag:code tag:work')).toEqual([3]);
    expect(ids('tag:co')).toEqual([]);
  });

  it('takes every other character as it is, and incomplete terms for nothing', () => {
    expect(ids('c++')).toEqual([3]);
    expect(ids('(amortised).')).toEqual([3]);
    expect(ids('$5 50%')).toEqual([5]);
    expect(ids('.*')).toEqual([]);
    expect(ids('bread - tag: "" -""')).toEqual([2, 4]);
  });
});

describe('Page', () => {
  let body;

  const find = (testId) => body.querySelector(`[data-testid="${testId}"]`);
  const all = (testId) => [...body.querySelectorAll(`[data-testid="${testId}"]`)];
  const text = (testId) => find(testId)?.textContent.replace(/\s+/g, ' ').trim() ?? null;
  const titles = () => all('title').map((title) => title.textContent.trim());
  const wait = (milliseconds) => {
    const $timeout = injector.get('$timeout');
    try {
      $timeout.flush(milliseconds);
    } catch (error) {
      if (!/No deferred tasks/.test(error.message)) throw error;
    }
    injector.get('$rootScope').$digest();
  };
  const type = (query) => {
    find('search').value = query;
    for (const name of ['input', 'change']) find('search').dispatchEvent(new Event(name, { bubbles: true }));
  };
  const search = (query) => {
    type(query);
    wait(250);
  };

  beforeEach(() => {
    const $httpBackend = injector.get('$httpBackend');
    $httpBackend.expectGET('data/notes.json').respond(NOTES);
    body = openPage(injector);
    $httpBackend.flush();
  });

  it('begins with all notes, pinned ones first, then by the time of their last change', () => {
    expect(titles()).toEqual(['Bread', 'Postcard codes', 'Groceries', 'C++ notes', 'Release plan']);
    expect(text('count')).toBe('5 of 5 notes');
    expect(find('search').value).toBe('');
    expect(find('clear')).toBeNull();
    expect(find('no-notes')).toBeNull();
  });

  it('searches 250 ms after the last key', () => {
    type('sal');
    wait(200);
    expect(text('count')).toBe('5 of 5 notes');
    type('salt');
    wait(200);
    expect(titles().length).toBe(5);
    wait(50);
    expect(titles()).toEqual(['Bread', 'Groceries']);
    expect(text('count')).toBe('2 of 5 notes');
  });

  it('says when nothing is found, and clears the search', () => {
    search('marzipan');
    expect(titles()).toEqual([]);
    expect(text('no-notes')).toBe('No notes match marzipan');
    expect(text('count')).toBe('0 of 5 notes');
    find('clear').click();
    expect(find('search').value).toBe('');
    expect(titles().length).toBe(5);
    expect(find('no-notes')).toBeNull();
    expect(find('clear')).toBeNull();
  });
});
