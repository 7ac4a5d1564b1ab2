import { Component, OnInit } from '@angular/core';

@Component({
  selector: 'app-length-converter',
  template: `
    <section>
      <input type="number" data-testid="value1" aria-label="First length" />
      <select data-testid="unit1" aria-label="Unit of the first length"></select>
      <span aria-hidden="true">⇄</span>
      <input type="number" data-testid="value2" aria-label="Second length" />
      <select data-testid="unit2" aria-label="Unit of the second length"></select>
    </section>
  `,
})
export class LengthConverterComponent implements OnInit {
  ngOnInit(): void {}
}
