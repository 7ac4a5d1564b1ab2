import { Type } from '@angular/core';
import { ComponentFixture, TestBed } from '@angular/core/testing';

import { AppComponent } from '../app.component';
import { LengthConverterComponent } from './length-converter.component';

const NAMES = ['Kilometer', 'Meter', 'Centimeter', 'Mile', 'Inch'];

let fixture: ComponentFixture<unknown>;

const find = (testId: string) => fixture.nativeElement.querySelector(`[data-testid="${testId}"]`);
const shown = () => [find('value1').value, find('value2').value];
const names = (testId: string) =>
  [...find(testId).options].map((option: HTMLOptionElement) => option.text.trim());
const chosen = (testId: string) => find(testId).selectedOptions[0]?.text.trim();
const summary = () => find('summary')?.textContent.replace(/\s+/g, ' ').trim() ?? null;

async function settle() {
  fixture.detectChanges();
  await fixture.whenStable();
  fixture.detectChanges();
}

async function show(component: Type<unknown>) {
  fixture = TestBed.createComponent(component);
  await settle();
}

async function type(testId: string, text: string) {
  find(testId).value = text;
  find(testId).dispatchEvent(new Event('input', { bubbles: true }));
  await settle();
}

async function choose(testId: string, name: string) {
  const index = names(testId).indexOf(name);
  expect(index).toBeGreaterThanOrEqual(0);
  find(testId).selectedIndex = index;
  find(testId).dispatchEvent(new Event('input', { bubbles: true }));
  find(testId).dispatchEvent(new Event('change', { bubbles: true }));
  await settle();
}

describe('LengthConverter', () => {
  beforeEach(() => show(LengthConverterComponent));

  it('starts with empty fields, Kilometer and Meter, and all units to choose from', () => {
    expect(shown()).toEqual(['', '']);
    expect(names('unit1')).toEqual(NAMES);
    expect(names('unit2')).toEqual(NAMES);
    expect(chosen('unit1')).toBe('Kilometer');
    expect(chosen('unit2')).toBe('Meter');
  });

  it('fills the second field while the first is typed', async () => {
    await type('value1', '1');
    expect(shown()).toEqual(['1', '1000']);
    await type('value1', '1.5');
    expect(shown()).toEqual(['1.5', '1500']);
    await type('value1', '0');
    expect(shown()).toEqual(['0', '0']);
  });

  it('fills the first field while the second is typed', async () => {
    await type('value2', '250');
    expect(shown()).toEqual(['0.25', '250']);
    await type('value2', '2500');
    expect(shown()).toEqual(['2.5', '2500']);
  });

  it('recalculates the second field for another second unit', async () => {
    await type('value1', '1');
    await choose('unit2', 'Centimeter');
    expect(shown()).toEqual(['1', '100000']);
    expect([chosen('unit1'), chosen('unit2')]).toEqual(['Kilometer', 'Centimeter']);
    await choose('unit2', 'Kilometer');
    expect(shown()).toEqual(['1', '1']);
  });

  it('recalculates the first field for another first unit', async () => {
    await type('value1', '2');
    await choose('unit1', 'Mile');
    expect(shown()).toEqual(['1.242742', '2000']);
    await choose('unit1', 'Centimeter');
    expect(shown()).toEqual(['200000', '2000']);
  });

  it('empties both fields together and leaves them empty for another unit', async () => {
    await type('value1', '3');
    expect(shown()).toEqual(['3', '3000']);
    await type('value1', '');
    expect(shown()).toEqual(['', '']);
    await choose('unit1', 'Inch');
    await choose('unit2', 'Mile');
    expect(shown()).toEqual(['', '']);
  });

  it('shows what equals what only while there are values', async () => {
    expect(summary()).toBeNull();
    await type('value2', '500');
    expect(summary()).toBe('0.5 km = 500 m');
    await choose('unit1', 'Meter');
    expect(summary()).toBe('500 m = 500 m');
    await type('value2', '0');
    expect(summary()).toBe('0 m = 0 m');
    await type('value2', '');
    expect(summary()).toBeNull();
  });
});

describe('App', () => {
  it('shows a converter that works below its heading', async () => {
    await show(AppComponent);
    expect(fixture.nativeElement.querySelector('h1').textContent).toBe('Length converter');
    await type('value1', '4');
    expect(shown()).toEqual(['4', '4000']);
  });
});
