// What stands below the fold of the overview: fetched after it.
import type { Overview } from "../../../src/dashboard/api/contract.ts";
import { lazily } from "../kit/lazy-component.tsx";

const more = () => import("./overview-panels.tsx");
const nothing = () => null;

export const DayTiles = lazily<{ now: Overview }>(() => more().then((part) => part.DayTiles), nothing);
export const SlowPanel = lazily(() => more().then((part) => part.SlowPanel), nothing);
export const ActivityPanel = lazily(() => more().then((part) => part.ActivityPanel), nothing);
export const FirstRun = lazily(() => more().then((part) => part.FirstRun), nothing);
