import { Component } from '@angular/core';

@Component({
  selector: 'app-not-found',
  template: `<p data-testid="not-found">There is no such page</p>`,
})
export class NotFoundComponent {}
