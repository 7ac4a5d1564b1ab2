import { AsyncPipe } from '@angular/common';
import { Component } from '@angular/core';
import { ActivatedRoute, RouterLink } from '@angular/router';
import { Observable, catchError, map, of, switchMap } from 'rxjs';

import { Member, MemberService } from './member.service';

interface View {
  readonly member?: Member;
  readonly failed: boolean;
}

@Component({
  selector: 'app-member-detail',
  imports: [AsyncPipe, RouterLink],
  template: `
    @if (view$ | async; as view) {
      @if (view.member; as member) {
        <article>
          <h2 data-testid="name">{{ member.name }}</h2>
          <p data-testid="member-department">{{ member.department }}</p>
          <a data-testid="email" [href]="'mailto:' + member.email">{{ member.email }}</a>
        </article>
      } @else if (view.failed) {
        <p role="alert" data-testid="load-error">Members could not be loaded</p>
      } @else {
        <p data-testid="no-such-member">No such member</p>
      }
    }
    <a data-testid="back" routerLink="/members">All members</a>
  `,
})
export class MemberDetailComponent {
  readonly view$: Observable<View>;

  constructor(route: ActivatedRoute, service: MemberService) {
    this.view$ = route.paramMap.pipe(
      switchMap((parameters) =>
        service.load().pipe(
          map((members) => ({
            member: members.find((member) => String(member.id) === parameters.get('id')),
            failed: false,
          })),
          catchError(() => of({ failed: true })),
        ),
      ),
    );
  }
}
