import { Component } from '@angular/core';

/** Shows where one is among several pages, and asks for the page before or after. */
@Component({
  selector: 'app-pager',
  template: `
    <nav aria-label="Pages">
      <button type="button" data-testid="previous">Previous</button>
      <span data-testid="position"></span>
      <button type="button" data-testid="next">Next</button>
    </nav>
  `,
})
export class PagerComponent {}
