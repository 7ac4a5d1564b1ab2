import { Component, OnInit } from '@angular/core';
import { FormsModule } from '@angular/forms';

import { ConversionService, LENGTH_UNITS } from './conversion.service';

@Component({
  selector: 'app-length-converter',
  imports: [FormsModule],
  template: `
    <section>
      <input
        type="number"
        data-testid="value1"
        aria-label="First length"
        [(ngModel)]="value1"
        (ngModelChange)="updateSecond()"
      />
      <select
        data-testid="unit1"
        aria-label="Unit of the first length"
        [(ngModel)]="unit1"
        (ngModelChange)="updateFirst()"
      >
        @for (unit of units; track unit.id) {
          <option [value]="unit.id">{{ unit.name }}</option>
        }
      </select>
      <span aria-hidden="true">⇄</span>
      <input
        type="number"
        data-testid="value2"
        aria-label="Second length"
        [(ngModel)]="value2"
        (ngModelChange)="updateFirst()"
      />
      <select
        data-testid="unit2"
        aria-label="Unit of the second length"
        [(ngModel)]="unit2"
        (ngModelChange)="updateSecond()"
      >
        @for (unit of units; track unit.id) {
          <option [value]="unit.id">{{ unit.name }}</option>
        }
      </select>
    </section>
    @if (value1 && value2) {
      <p data-testid="summary">{{ value1 }} {{ symbol(unit1) }} = {{ value2 }} {{ symbol(unit2) }}</p>
    }
  `,
})
export class LengthConverterComponent implements OnInit {
  readonly units = LENGTH_UNITS;

  value1: number | null = null;
  value2: number | null = null;
  unit1 = '';
  unit2 = '';

  constructor(private readonly conversion: ConversionService) {}

  ngOnInit(): void {
    this.unit1 = this.units[0].id;
    this.unit2 = this.units[1].id;
  }

  updateFirst(): void {
    this.value1 = this.converted(this.value2, this.unit2, this.unit1);
  }

  updateSecond(): void {
    this.value2 = this.converted(this.value1, this.unit1, this.unit2);
  }

  symbol(id: string): string {
    return this.units.find((unit) => unit.id === id)?.symbol ?? '';
  }

  private converted(value: number | null, from: string, to: string): number | null {
    return value ? this.conversion.convert(value, from, to) : null;
  }
}
