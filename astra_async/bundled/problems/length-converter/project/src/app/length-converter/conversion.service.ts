import { Injectable } from '@angular/core';

/** A unit of length; `metres` is the length of one such unit in metres. */
export interface LengthUnit {
  readonly id: string;
  readonly name: string;
  readonly symbol: string;
  readonly metres: number;
}

export const LENGTH_UNITS: readonly LengthUnit[] = [
  { id: 'kilometer', name: 'Kilometer', symbol: 'km', metres: 1000 },
  { id: 'meter', name: 'Meter', symbol: 'm', metres: 1 },
  { id: 'centimeter', name: 'Centimeter', symbol: 'cm', metres: 0.01 },
  { id: 'mile', name: 'Mile', symbol: 'mi', metres: 1609.344 },
  { id: 'inch', name: 'Inch', symbol: 'in', metres: 0.0254 },
];

const DECIMALS = 6;

@Injectable({ providedIn: 'root' })
export class ConversionService {
  /** Converts a number between two units, which are given by their ids; rounds to six decimals. */
  convert(value: number, from: string, to: string): number {
    return Number(((value * metresOf(from)) / metresOf(to)).toFixed(DECIMALS));
  }
}

function metresOf(id: string): number {
  const unit = LENGTH_UNITS.find((each) => each.id === id);
  if (!unit) throw new Error(`There is no unit ${id}`);
  return unit.metres;
}
