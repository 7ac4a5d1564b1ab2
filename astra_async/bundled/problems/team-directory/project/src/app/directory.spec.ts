import { Location } from '@angular/common';
import { provideHttpClient } from '@angular/common/http';
import { HttpTestingController, provideHttpClientTesting } from '@angular/common/http/testing';
import { provideLocationMocks } from '@angular/common/testing';
import { ComponentFixture, TestBed } from '@angular/core/testing';
import { Router, provideRouter } from '@angular/router';

import { AppComponent } from './app.component';
import { routes } from './app.routes';

const member = (id: number, name: string, department: string) => ({
  id,
  name,
  department,
  email: `m${id}@example.org`,
});
const MEMBERS = [
  member(11, 'Yusuf Kaya', 'Design'),
  member(2, 'Ada Berg', 'Engineering'),
  member(7, 'Émile Roux', 'Design'),
  member(4, 'Ines Duarte', 'Sales'),
  member(5, 'Bela Novak', 'Design'),
  member(1, 'Zoe Finch', 'Engineering'),
  member(8, 'Chidi Okafor', 'Design'),
  member(3, 'Greta Lund', 'Engineering'),
  member(9, 'Dana Weiss', 'Design'),
  member(10, 'Hugo Prat', 'Design'),
  member(6, 'Farid Amiri', 'Engineering'),
  member(12, 'Jun Mori', 'Engineering'),
];

let fixture: ComponentFixture<AppComponent>;
let http: HttpTestingController;
let requests: number;
let fails: boolean;

const find = (testId: string) => fixture.nativeElement.querySelector(`[data-testid="${testId}"]`);
const text = (testId: string) => find(testId)?.textContent.replace(/\s+/g, ' ').trim() ?? null;
const links = (): HTMLAnchorElement[] => [
  ...fixture.nativeElement.querySelectorAll('[data-testid="member"] a'),
];
const names = () => links().map((link) => link.textContent!.trim());
const address = () => TestBed.inject(Router).parseUrl(TestBed.inject(Location).path());
const path = () => TestBed.inject(Location).path().split('?')[0];
const parameter = (name: string) => address().queryParamMap.get(name);

async function settle() {
  for (let round = 0; round < 3; round++) {
    fixture.detectChanges();
    await fixture.whenStable();
    for (const request of http.match('/api/members')) {
      requests += 1;
      if (fails) request.flush('', { status: 500, statusText: 'Internal Server Error' });
      else request.flush(MEMBERS);
    }
  }
  fixture.detectChanges();
}

async function open(url: string) {
  await fixture.ngZone!.run(() => TestBed.inject(Router).navigateByUrl(url));
  await settle();
}

async function click(element: HTMLElement) {
  element.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, button: 0 }));
  await settle();
}

const departments = () =>
  [...find('department').options].map((option: HTMLOptionElement) => option.text.trim());
const department = () => find('department').selectedOptions[0].text.trim();

async function choose(name: string) {
  const index = departments().indexOf(name);
  expect(index).toBeGreaterThanOrEqual(0);
  find('department').selectedIndex = index;
  find('department').dispatchEvent(new Event('input', { bubbles: true }));
  find('department').dispatchEvent(new Event('change', { bubbles: true }));
  await settle();
}

beforeEach(() => {
  TestBed.configureTestingModule({
    providers: [
      provideRouter(routes),
      provideHttpClient(),
      provideHttpClientTesting(),
      provideLocationMocks(),
    ],
  });
  http = TestBed.inject(HttpTestingController);
  requests = 0;
  fails = false;
  fixture = TestBed.createComponent(AppComponent);
});

describe('List', () => {
  it('is where the empty address leads, and begins with five members in order', async () => {
    await open('/');
    expect(path()).toBe('/members');
    expect(names()).toEqual(['Ada Berg', 'Bela Novak', 'Chidi Okafor', 'Dana Weiss', 'Émile Roux']);
    expect(links()[4].getAttribute('href')).toBe('mailto:m7@example.org');
    expect(text('position')).toBe('Page 1 of 3');
  });

  it('goes from page to page and keeps the page in the address', async () => {
    await open('/members');
    await click(find('next'));
    expect(names()).toEqual(['Farid Amiri', 'Greta Lund', 'Hugo Prat', 'Ines Duarte', 'Jun Mori']);
    expect(parameter('page')).toBe('2');
    await click(find('next'));
    expect(names()).toEqual(['Yusuf Kaya', 'Zoe Finch']);
    expect(parameter('page')).toBe('3');
    await click(find('previous'));
    await click(find('previous'));
    expect(text('position')).toBe('Page 1 of 3');
    expect(parameter('page') ?? '1').toBe('1');
  });

  it('takes the page from the address and mends one that cannot be', async () => {
    const pages = { '3': 3, '99': 3, '0': 1, '-2': 1, '1.5': 1, two: 1, '': 1 };
    for (const [page, shown] of Object.entries(pages)) {
      await open(`/members?page=${page}`);
      expect([page, text('position')]).toEqual([page, `Page ${shown} of 3`]);
    }
  });

  it('offers each department once and goes to the first page of the chosen one', async () => {
    await open('/members?page=2');
    expect(departments()).toEqual(['All departments', 'Design', 'Engineering', 'Sales']);
    expect(department()).toBe('All departments');
    await choose('Engineering');
    expect(names()).toEqual(['Ada Berg', 'Farid Amiri', 'Greta Lund', 'Jun Mori', 'Zoe Finch']);
    expect(find('position')).toBeNull();
    expect(parameter('department')).toBe('Engineering');
    expect(departments().length).toBe(4);
    await choose('All departments');
    expect(text('position')).toBe('Page 1 of 3');
    expect(address().queryParamMap.has('department')).toBe(false);
  });

  it('takes the department from the address, keeps it while paging, and loads once', async () => {
    await open('/members?department=Design');
    expect(department()).toBe('Design');
    expect(text('position')).toBe('Page 1 of 2');
    await click(find('next'));
    expect(names()).toEqual(['Yusuf Kaya']);
    expect([parameter('department'), parameter('page')]).toEqual(['Design', '2']);
    expect(requests).toBe(1);
    await open('/members?department=Nowhere');
    expect(names()).toEqual([]);
    expect(text('no-members')).toBe('No members');
    await open('/members?department=Sales');
    expect(names()).toEqual(['Ines Duarte']);
    expect(find('no-members')).toBeNull();
  });
});

describe('App', () => {
  it('says when the members cannot be loaded, until they are', async () => {
    fails = true;
    await open('/members');
    expect(text('load-error')).toBe('Members could not be loaded');
    expect(names()).toEqual([]);
    fails = false;
    await open('/teams');
    await open('/members');
    expect(find('load-error')).toBeNull();
    expect(names().length).toBe(5);
  });

  it('still has a page for addresses that it does not know', async () => {
    await open('/teams');
    expect(text('not-found')).toBe('There is no such page');
    await open('/members/7');
    expect(text('not-found')).toBe('There is no such page');
  });
});
