import { Injectable } from '@angular/core';

import { LENGTH_UNITS } from './length-units';

const DECIMALS = 6;

@Injectable({ providedIn: 'root' })
export class ConversionService {
  /** Converts a value between two units, which are given by their ids. */
  convert(value: number | null, from: string, to: string): number | null {
    if (value === null || value === undefined) return null;
    const converted = (value * this.metres(from)) / this.metres(to);
    return Number(converted.toFixed(DECIMALS));
  }

  private metres(id: string): number {
    const unit = LENGTH_UNITS.find((each) => each.id === id);
    if (!unit) throw new Error(`There is no unit ${id}`);
    return unit.metres;
  }
}
