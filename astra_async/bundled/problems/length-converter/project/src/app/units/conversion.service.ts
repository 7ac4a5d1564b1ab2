import { Injectable } from '@angular/core';

@Injectable({ providedIn: 'root' })
export class ConversionService {
  /** Converts a value between two units, which are given by their ids. */
  convert(value: number | null, from: string, to: string): number | null {
    return value;
  }
}
