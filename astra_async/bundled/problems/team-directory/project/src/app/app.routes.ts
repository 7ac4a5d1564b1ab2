import { Routes } from '@angular/router';

import { NotFoundComponent } from './app.component';

export const routes: Routes = [{ path: '**', component: NotFoundComponent }];
