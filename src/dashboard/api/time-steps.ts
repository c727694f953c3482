/** The steps of a time that is shown: whole minutes each, at most so many. Pure. */
const minuteMs = 60_000;

export function stepFor(from: number, to: number, most: number): number {
  return minuteMs * Math.ceil((to - from) / minuteMs / most);
}

/** When each begins. */
export function stepsOf(from: number, to: number, stepMs: number): number[] {
  const at: number[] = [];
  for (let one = Math.floor(from / stepMs) * stepMs; one < to; one += stepMs) at.push(one);
  return at;
}
