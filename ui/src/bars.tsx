// Small bars: how often, hour by hour. The number of each is in a table for those who listen, or in its label.
interface BarsOptions {
  readonly of: readonly number[];
  /** What they are, said before the figures. */
  readonly label: string;
  readonly height: number;
  /** When each begins; said with its number. */
  readonly name?: (index: number) => string;
  readonly looks?: string;
  /** How much of each is bad news. */
  readonly bad?: readonly number[];
  /** What a bar of the whole height stands for; default the largest. */
  readonly most?: number;
}

export function Bars({ of, label, height, name, looks = "", bad, most: whole }: BarsOptions) {
  const most = whole ?? Math.max(1, ...of);
  const sum = of.reduce((total, n) => total + n, 0);
  const step = 10;
  const peak =
    sum === 0 || name === undefined ? "" : `, most ${Math.max(...of)} (${name(of.indexOf(Math.max(...of)))})`;
  // What is not nothing can be seen.
  const tall = (n: number): number => (n === 0 ? 0 : Math.max(3, Math.min(1, n / most) * height));
  const bar = (n: number, i: number, kind: string) => (
    <rect class={kind} x={i * step + 1} y={height - tall(n)} width={step - 2} height={tall(n)} />
  );
  return (
    <svg
      class={`bars ${looks}`.trim()}
      role="img"
      aria-label={`${label}: ${sum} in all${peak}`}
      viewBox={`0 0 ${of.length * step} ${height}`}
      preserveAspectRatio="none"
      height={height}
    >
      {of.map((n, i) => (
        <g key={i}>
          {name !== undefined && <title>{`${n}, ${name(i)}`}</title>}
          <rect class="none" x={i * step + 1} y={height - 1} width={step - 2} height={1} />
          {bar(n, i, "")}
          {bar(bad?.[i] ?? 0, i, "bad")}
        </g>
      ))}
    </svg>
  );
}
