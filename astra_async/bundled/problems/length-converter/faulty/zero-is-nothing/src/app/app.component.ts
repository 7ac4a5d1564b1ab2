import { Component } from '@angular/core';

import { LengthConverterComponent } from './length-converter/length-converter.component';

@Component({
  selector: 'app-root',
  imports: [LengthConverterComponent],
  template: `
    <h1>Length converter</h1>
    <app-length-converter></app-length-converter>
  `,
})
export class AppComponent {}
