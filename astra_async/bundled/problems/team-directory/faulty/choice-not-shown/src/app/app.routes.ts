import { Routes } from '@angular/router';

import { NotFoundComponent } from './app.component';
import { MemberListComponent } from './members/member-list.component';

export const routes: Routes = [
  { path: '', pathMatch: 'full', redirectTo: 'members' },
  { path: 'members', component: MemberListComponent },
  { path: '**', component: NotFoundComponent },
];
