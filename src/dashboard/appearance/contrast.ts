/**
 * Colours as `#rrggbb`: how far two are apart, and the nearest that can be read. Pure.
 */

/** As WCAG 2 has it: from 1 to 21. */
export function contrast(a: string, b: string): number {
  const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

/**
 * Black or white, whichever can be read better: at least 4.5 : 1 on any colour that there is (the worst is a grey of 4.58).
 *
 * @example
 * inkOn("#facc15"); // "#000000"
 */
export function inkOn(paper: string): "#ffffff" | "#000000" {
  return contrast(paper, "#ffffff") >= contrast(paper, "#000000") ? "#ffffff" : "#000000";
}

/**
 * So much of the one in the other.
 *
 * @example
 * mixed("#ffffff", "#000000", 0.5); // "#808080"
 */
export function mixed(base: string, other: string, share: number): string {
  const parts = [1, 3, 5].map((at) => {
    const [from, to] = [base, other].map((color) => Number.parseInt(color.slice(at, at + 2), 16)) as [
      number,
      number,
    ];
    return Math.round(from + (to - from) * share)
      .toString(16)
      .padStart(2, "0");
  });
  return `#${parts.join("")}`;
}

/** The colour itself, or the nearest on the way to `pole` that is so far apart from all of these. */
export function apartFrom(color: string, surfaces: readonly string[], least: number, pole: string): string {
  for (let step = 0; step < 100; step += 1) {
    const one = mixed(color, pole, step / 100);
    if (surfaces.every((surface) => contrast(one, surface) >= least)) return one;
  }
  return pole;
}

function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
