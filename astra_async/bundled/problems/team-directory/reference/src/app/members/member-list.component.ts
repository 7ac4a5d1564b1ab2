import { AsyncPipe } from '@angular/common';
import { Component } from '@angular/core';
import { ActivatedRoute, ParamMap, Params, Router } from '@angular/router';
import { Observable, catchError, combineLatest, map, of } from 'rxjs';

import { Member, MemberService } from './member.service';
import { PagerComponent } from './pager.component';

const PAGE_SIZE = 5;

interface View {
  readonly department: string;
  readonly departments: string[];
  readonly members: Member[];
  readonly page: number;
  readonly pages: number;
}

@Component({
  selector: 'app-member-list',
  imports: [AsyncPipe, PagerComponent],
  template: `
    @if (failed) {
      <p role="alert" data-testid="load-error">Members could not be loaded</p>
    }
    @if (view$ | async; as view) {
      <select
        #choice
        data-testid="department"
        aria-label="Department"
        (change)="show({ department: choice.value || null, page: null })"
      >
        <option value="" [selected]="view.department === ''">All departments</option>
        @for (department of view.departments; track department) {
          <option [value]="department" [selected]="department === view.department">{{ department }}</option>
        }
      </select>
      <ul>
        @for (member of view.members; track member.id) {
          <li data-testid="member">
            <a [href]="'mailto:' + member.email">{{ member.name }}</a>
          </li>
        } @empty {
          <li data-testid="no-members">No members</li>
        }
      </ul>
      <app-pager [page]="view.page" [pages]="view.pages" (pageChange)="show({ page: $event })"></app-pager>
    }
  `,
})
export class MemberListComponent {
  readonly view$: Observable<View | null>;
  failed = false;

  constructor(
    private readonly router: Router,
    private readonly route: ActivatedRoute,
    service: MemberService,
  ) {
    this.view$ = combineLatest([service.load(), route.queryParamMap]).pipe(
      map(([members, parameters]) => viewOf(members, parameters)),
      catchError(() => {
        this.failed = true;
        return of(null);
      }),
    );
  }

  show(queryParams: Params): void {
    this.router.navigate([], { relativeTo: this.route, queryParams, queryParamsHandling: 'merge' });
  }
}

function viewOf(members: Member[], parameters: ParamMap): View {
  const department = parameters.get('department') ?? '';
  const found = members
    .filter((member) => department === '' || member.department === department)
    .sort((one, other) => one.name.localeCompare(other.name));
  const pages = Math.max(1, Math.ceil(found.length / PAGE_SIZE));
  const page = Math.min(pageOf(parameters.get('page')), pages);
  return {
    department,
    departments: [...new Set(members.map((member) => member.department))].sort(),
    members: found.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE),
    page,
    pages,
  };
}

function pageOf(text: string | null): number {
  const page = Number(text);
  return Number.isInteger(page) && page >= 1 ? page : 1;
}
