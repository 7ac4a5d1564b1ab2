import { HttpClient } from '@angular/common/http';
import { Injectable } from '@angular/core';
import { Observable } from 'rxjs';

export interface Member {
  readonly id: number;
  readonly name: string;
  readonly department: string;
  readonly email: string;
}

@Injectable({ providedIn: 'root' })
export class MemberService {
  constructor(private readonly http: HttpClient) {}

  /** Asks the server for all members of the team, in no order; every subscription asks again. */
  load(): Observable<Member[]> {
    return this.http.get<Member[]>('/api/members');
  }
}
