import { Component, OnInit } from '@angular/core';
import { FormsModule } from '@angular/forms';

import { ConversionService } from '../units/conversion.service';
import { LENGTH_UNITS } from '../units/length-units';

@Component({
  selector: 'app-length-converter',
  imports: [FormsModule],
  templateUrl: './length-converter.component.html',
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

  get hasValues(): boolean {
    return this.value1 !== null && this.value2 !== null;
  }

  updateSecond(): void {
    this.value2 = this.conversion.convert(this.value1, this.unit1, this.unit2);
  }

  symbol(id: string): string {
    return this.units.find((unit) => unit.id === id)?.symbol ?? '';
  }
}
