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
