/**
 * How work grows with its size: the time that sixteen times as much takes, in times of the first. Linear work gives about 16, quadratic
 * about 256: no disturbance looks like that in the best of several rounds by turns. The engine does not count the steps of an expression,
 * and the processor's time of a thread is told in ticks that are longer than this takes. No time is asserted by itself.
 */
export function growth<Input>(
  make: (size: number) => Input,
  size: number,
  work: (input: Input) => void,
): number {
  const [small, large] = [make(size), make(size * 16)];
  const best = { small: Infinity, large: Infinity };
  const time = (input: Input): number => {
    const started = performance.now();
    work(input);
    return performance.now() - started;
  };
  // Too quick to be measured is quick enough.
  const ratio = (): number => best.large / Math.max(best.small, 0.01);
  // A disturbed machine needs more rounds before both have had a good one; squares stay squares.
  for (let round = 0; round < rounds || (round < mostRounds && ratio() >= LINEAR); round += 1) {
    best.small = Math.min(best.small, time(small));
    best.large = Math.min(best.large, time(large));
  }
  return ratio();
}

const rounds = 8;
const mostRounds = 100;
/** Four times as much as linear work, and a quarter of what squares take. */
export const LINEAR = 64;
