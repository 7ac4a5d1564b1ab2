// Meaning of a cell's byte, and statistics over cells.

export const MISSING = 0, NO_SOLUTION = 1, NONE = 2, WAITING = 252, ALL = 253, UNDER_WAY = 254, NOT_PLANNED = 255;

/** The seven states of a planned sample, best first; `name` is used in URLs. */
export const STATES = [
  { name: "all", title: "all passed", byte: ALL },
  { name: "part", title: "part passed", byte: 128 },
  { name: "none", title: "none passed", byte: NONE },
  { name: "no-solution", title: "no solution", byte: NO_SOLUTION },
  { name: "under-way", title: "under way", byte: UNDER_WAY },
  { name: "waiting", title: "waiting", byte: WAITING },
  { name: "missing", title: "missing", byte: MISSING },
];

const PLACES = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte === ALL) return 0;
  if (byte === NONE) return 2;
  if (byte === NO_SOLUTION) return 3;
  if (byte === UNDER_WAY) return 4;
  if (byte === WAITING) return 5;
  if (byte === MISSING) return 6;
  return byte === NOT_PLANNED ? 7 : 1;
});

/** Index of a byte's state in STATES; STATES.length for a cell that is not planned. */
export const placeOf = (byte) => PLACES[byte];
export const isFinal = (byte) => byte >= NO_SOLUTION && byte <= ALL && byte !== WAITING;
export const isFailing = (byte) => byte >= NO_SOLUTION && byte < WAITING;

/** Score of a final cell: exact for no and for all tests, else within 0.4 %. */
export const scoreOf = (byte) => (byte === ALL ? 1 : byte <= NONE ? 0 : (byte - 2.5) / 249);

/** The byte that draws a mean score. */
export const byteOf = (score) => (score <= 0 ? NONE : score >= 1 ? ALL : 3 + Math.min(248, Math.floor(249 * score)));

/** Count states over cells. */
export function countStates(bytes, mask = null) {
  const counts = new Array(STATES.length + 1).fill(0);
  for (let index = 0; index < bytes.length; index += 1) if (!mask || mask[index]) counts[PLACES[bytes[index]]] += 1;
  return counts;
}

/** Number of planned cells; with different k, some cells are not planned. */
export const plannedOf = (counts) => counts.slice(0, STATES.length).reduce((sum, value) => sum + value, 0);

/** Mean and deviation of final cells in a range; the mean is null if there are none. */
export function spread(bytes, start, length) {
  let n = 0, sum = 0, squares = 0, lost = 0, underWay = false;
  for (let index = start; index < start + length; index += 1) {
    const byte = bytes[index];
    if (byte === UNDER_WAY) underWay = true;
    if (!isFinal(byte)) continue;
    const score = scoreOf(byte);
    n += 1;
    sum += score;
    squares += score * score;
    if (byte === NO_SOLUTION) lost += 1;
  }
  if (!n) return { n, mean: null, sd: null, lost, underWay };
  return { n, mean: sum / n, sd: Math.sqrt(Math.max(0, squares / n - (sum / n) ** 2)), lost, underWay };
}
