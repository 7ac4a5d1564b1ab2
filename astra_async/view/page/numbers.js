// Numbers as text, rounded as in the tables of the report.

/** A share in percent with one decimal; a tie rounds to the even digit. */
export function percent(share) {
  if (share === null || share === undefined) return "–";
  const value = Number((100 * share).toFixed(6)); // 27.250000000000004 is a tie as well
  // toFixed rounds a tie away from 0, which is the odd digit only for numbers that end in .25.
  return (Math.abs(value) % 1 === 0.25 ? Math.trunc(10 * value) / 10 : value).toFixed(1);
}
