// Charts load after the page. If they do not load, the sentence with the latest values stays.
import type { Chart as ChartOf } from "./chart.tsx";
import { lazily } from "../kit/lazy-component.tsx";

/** An instant with a label, such as a deploy. */
export interface Mark {
  readonly at: number;
  readonly text: string;
}

export const Chart = lazily<Parameters<typeof ChartOf>[0]>(
  async () => {
    allowAnyLanguage();
    return (await import("./chart.tsx")).Chart;
  },
  ({ lines }) => {
    const now = lines.map(
      ({ name, values, shown }) =>
        `${name} ${values.at(-1) === null || values.at(-1) === undefined ? "—" : shown(values.at(-1) as number)}`,
    );
    return (
      <div class="chart">
        <div class="legend">{now.join(" · ")}</div>
        <div class="plot" />
      </div>
    );
  },
);

/** uPlot passes navigator.language to Intl when it loads, and Intl throws for values such as "en-US@posix". */
function allowAnyLanguage(): void {
  try {
    Intl.getCanonicalLocales(navigator.language);
  } catch {
    Object.defineProperty(navigator, "language", { configurable: true, value: "en" });
  }
}
