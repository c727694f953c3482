// Charts of machines, below the list of workers: fetched after it.
import { lazily } from "../kit/lazy-component.tsx";

export const HostCharts = lazily(
  () => import("./resource-charts.tsx").then((part) => part.HostCharts),
  () => null,
);
