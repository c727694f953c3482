/**
 * How work grows with its size: the time that four times as much takes, in times of the first. Linear work gives about 4, quadratic
 * about 16. The best of several rounds by turns, so that what else the machine does falls out of it; no time is asserted by itself.
 */
export function growth<Input>(
  make: (size: number) => Input,
  size: number,
  work: (input: Input) => void,
): number {
  const [small, large] = [make(size), make(size * 4)];
  const best = { small: Infinity, large: Infinity };
  const time = (input: Input): number => {
    const started = performance.now();
    work(input);
    return performance.now() - started;
  };
  // Too quick to be measured is quick enough.
  const ratio = (): number => best.large / Math.max(best.small, 0.05);
  // A busy machine needs more rounds before both have had an undisturbed one; squares stay squares.
  for (let round = 0; round < rounds || (round < mostRounds && ratio() >= LINEAR); round += 1) {
    best.small = Math.min(best.small, time(small));
    best.large = Math.min(best.large, time(large));
  }
  return ratio();
}

const rounds = 8;
const mostRounds = 100;
/** Between the two, nearer to the worse: noise must not fail it, and squares must. */
export const LINEAR = 10;
