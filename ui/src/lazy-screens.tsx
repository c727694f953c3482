// Screens that nobody begins with: fetched when they are first opened, so that the first script stays small.
import { lazily } from "./lazy.tsx";

const loading = () => (
  <div class="empty" role="status">
    <p>Loading…</p>
  </div>
);

export const Limits = lazily(() => import("./screens/limits.tsx").then((screen) => screen.Limits), loading);
export const Runs = lazily(() => import("./screens/runs.tsx").then((screen) => screen.Runs), loading);
