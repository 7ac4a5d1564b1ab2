import { Component } from '@angular/core';

import { LengthConverterComponent } from './length-converter/length-converter.component';

@Component({
  selector: 'app-root',
  imports: [LengthConverterComponent],
  templateUrl: './app.component.html',
})
export class AppComponent {
  readonly title = 'Length converter';
}
