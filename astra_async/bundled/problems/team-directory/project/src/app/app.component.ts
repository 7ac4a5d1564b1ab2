import { Component } from '@angular/core';
import { RouterOutlet } from '@angular/router';

@Component({
  selector: 'app-root',
  imports: [RouterOutlet],
  template: `
    <h1>Team directory</h1>
    <router-outlet></router-outlet>
  `,
})
export class AppComponent {}

@Component({
  selector: 'app-not-found',
  template: `<p data-testid="not-found">There is no such page</p>`,
})
export class NotFoundComponent {}
