/**
 * What the dashboard asks of features that a client may not have. One small adapter for each turns the feature's own
 * names into the contract's JSON; a feature without an adapter is absent: `/features` says so, its routes answer 404, its
 * screens are hidden. Nothing is ever made up.
 */
import type { Holdfast } from "../index.ts";
import type {
  BreakerLine,
  BudgetLine,
  Feature,
  FlowHistory,
  LaneList,
  ScheduleLine,
  Series,
} from "./contract.ts";

/** A change of a schedule; what is not given stays. */
export interface ScheduleChange {
  readonly cron?: string;
  readonly every?: string;
  readonly timezone?: string;
  readonly missed?: ScheduleLine["missed"];
  readonly overlap?: ScheduleLine["overlap"];
  readonly jitter?: string;
}

/** A change of a lane; null is back to the queue's default. */
export interface LaneChange {
  readonly concurrency?: number | null;
  readonly rate?: { readonly limit: number; readonly per: string } | null;
  readonly weight?: number | null;
  readonly paused?: boolean;
}

/** One for each feature. JSON texts (`output`, `data`) are given raw: the routes redact them. */
export interface Adapters {
  readonly flows?: {
    history(id: string): Promise<FlowHistory | null>;
    signal(name: string, signal: { key: string | null; data: unknown }): Promise<void>;
  };
  readonly schedules?: {
    list(): Promise<readonly ScheduleLine[]>;
    preview(name: string, n: number): Promise<readonly number[]>;
    change(name: string, change: ScheduleChange): Promise<void>;
    pause(name: string): Promise<void>;
    resume(name: string): Promise<void>;
    /** Gives the id of the job that it made. */
    trigger(name: string): Promise<string>;
    remove(name: string): Promise<boolean>;
  };
  readonly lanes?: {
    list(page: { queue: string | null; limit: number; cursor: string | null }): Promise<LaneList>;
    set(queue: string, lane: string, change: LaneChange): Promise<void>;
  };
  readonly budgets?: {
    list(): Promise<readonly BudgetLine[]>;
    set(name: string, budget: { limit: number; per: string; burst?: number }): Promise<void>;
    drain(name: string): Promise<void>;
  };
  readonly breakers?: {
    list(): Promise<readonly BreakerLine[]>;
    reset(key: string): Promise<boolean>;
  };
  readonly series?: (query: {
    queue: string | null;
    name: string | null;
    from: number;
    to: number;
  }) => Promise<Series>;
}

export const FEATURES: readonly Feature[] = ["flows", "schedules", "lanes", "budgets", "breakers", "series"];

/** The adapters of what this client has. Each feature adds its own here when it comes. */
export function adaptersOf(_hf: Holdfast): Adapters {
  return {};
}
