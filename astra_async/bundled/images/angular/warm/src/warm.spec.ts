// Loads the parts of Angular that the tests of this set's problems load, so that Jest keeps their
// transformed code in its cache.
import '@angular/common/http/testing';
import '@angular/common/testing';
import '@angular/router/testing';

import { Component } from '@angular/core';
import { TestBed } from '@angular/core/testing';
import { FormsModule, ReactiveFormsModule } from '@angular/forms';
import { RouterOutlet } from '@angular/router';

@Component({
  imports: [FormsModule, ReactiveFormsModule, RouterOutlet],
  template: '<p>{{ word }}</p>',
})
class WarmComponent {
  readonly word = 'warm';
}

it('renders a component', () => {
  const fixture = TestBed.createComponent(WarmComponent);
  fixture.detectChanges();
  expect(fixture.nativeElement.textContent).toBe('warm');
});
