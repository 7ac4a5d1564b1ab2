import { Component, input, output } from '@angular/core';

/** Shows where one is among several pages, and asks for the page before or after; nothing for a single page. */
@Component({
  selector: 'app-pager',
  template: `
    @if (pages() > 1) {
      <nav aria-label="Pages">
        <button data-testid="previous" [disabled]="page() <= 1" (click)="pageChange.emit(page() - 1)">
          Previous
        </button>
        <span data-testid="position">Page {{ page() }} of {{ pages() }}</span>
        <button data-testid="next" [disabled]="page() >= pages()" (click)="pageChange.emit(page() + 1)">
          Next
        </button>
      </nav>
    }
  `,
})
export class PagerComponent {
  readonly page = input.required<number>();
  readonly pages = input.required<number>();
  readonly pageChange = output<number>();
}
