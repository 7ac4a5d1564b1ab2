import { Component } from '@angular/core';

@Component({
  selector: 'app-member-detail',
  template: `
    <article>
      <h2 data-testid="name"></h2>
      <p data-testid="member-department"></p>
      <a data-testid="email"></a>
    </article>
  `,
})
export class MemberDetailComponent {}
