import { Routes } from '@angular/router';

import { MemberDetailComponent } from './members/member-detail.component';
import { MemberListComponent } from './members/member-list.component';
import { NotFoundComponent } from './not-found.component';

export const routes: Routes = [
  { path: '', pathMatch: 'full', redirectTo: 'members' },
  { path: 'members', component: MemberListComponent },
  { path: 'members/:id', component: MemberDetailComponent },
  { path: '**', component: NotFoundComponent },
];
