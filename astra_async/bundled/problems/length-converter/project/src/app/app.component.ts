import { Component } from '@angular/core';

@Component({
  selector: 'app-root',
  template: `<h1>Length converter</h1>`,
})
export class AppComponent {}
