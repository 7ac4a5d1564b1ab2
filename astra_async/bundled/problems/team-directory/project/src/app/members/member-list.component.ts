import { Component } from '@angular/core';

@Component({
  selector: 'app-member-list',
  template: `
    <select data-testid="department" aria-label="Department">
      <option value="">All departments</option>
    </select>
    <ul></ul>
  `,
})
export class MemberListComponent {}
