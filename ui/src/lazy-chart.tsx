// Charts come after the page: the first paint needs no chart, and a browser in which they do not load (uPlot refuses a
// language tag such as en-US@posix) still has everything else, and the chart's sentence.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Chart as ChartOf } from "./chart.tsx";

const loaded = signal<typeof ChartOf | "failed" | null>(null);
let asked = false;

export function Chart(props: Parameters<typeof ChartOf>[0]) {
  useEffect(() => {
    if (asked) return;
    asked = true;
    import("./chart.tsx").then(
      (module) => (loaded.value = module.Chart),
      () => (loaded.value = "failed"),
    );
  }, []);
  const Loaded = loaded.value;
  if (Loaded !== null && Loaded !== "failed") return <Loaded {...props} />;
  const now = props.lines.map(
    ({ name, values, shown }) =>
      `${name} ${values.at(-1) === null || values.at(-1) === undefined ? "—" : shown(values.at(-1) as number)}`,
  );
  return (
    <div class="chart">
      <div class="legend">{now.join(" · ")}</div>
      <div class="plot" />
    </div>
  );
}
