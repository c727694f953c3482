// The topics of the live stream that this tab follows, with their subscribers. No connection in here (live-stream.ts).
import { signal } from "@preact/signals";
import type { Fields } from "../../../src/dashboard/live/delta.ts";

export type How = "snapshot" | "change" | "age";

export interface Told {
  readonly topic: string;
  readonly value: Fields;
  readonly how: How;
  /** When the server began to read it, by its clock. */
  readonly readAt: number;
}

export interface Follower {
  /** The whole of it, as it is now. */
  value(value: Fields, how: How, readAt: number): void;
  /** It may have changed: where no stream comes through, or it cannot be told. */
  ask(): void;
}

const followers = new Map<string, Set<Follower>>();
/** What was told last of what is followed, and when. */
const latest = new Map<string, { readonly told: Told; readonly at: number }>();
/** The topics of this tab, in order. Everybody follows the overview. */
export const wanted = signal<readonly string[]>(["overview"]);
/** Screens change their topics one by one: what is left is wanted until the next one has come. */
const settleMs = 50;
let settling: ReturnType<typeof setTimeout> | null = null;

function changed(): void {
  settling ??= setTimeout(() => {
    settling = null;
    const topics = ["overview", ...[...followers.keys()].filter((topic) => topic !== "overview").sort()];
    if (topics.join() !== wanted.peek().join()) wanted.value = topics;
  }, settleMs);
}

/** `since`: what was told after it is told again; who follows has asked then. Gives what ends it. */
export function follow(topic: string, follower: Follower, since = Infinity): () => void {
  const all = followers.get(topic) ?? new Set<Follower>();
  followers.set(topic, all.add(follower));
  changed();
  const last = latest.get(topic);
  if (last !== undefined && last.at >= since)
    follower.value(last.told.value, last.told.how, last.told.readAt);
  return () => {
    all.delete(follower);
    if (all.size === 0 && followers.get(topic) === all) followers.delete(topic);
    if (!followers.has(topic)) latest.delete(topic);
    changed();
  };
}

export function notifyFollowers(told: Told): void {
  const { topic, value, how, readAt } = told;
  if (followers.has(topic)) latest.set(topic, { told, at: Date.now() });
  for (const follower of followers.get(topic) ?? []) follower.value(value, how, readAt);
}

/** Of one topic, or of all. */
export function reloadFollowers(topic: string | null): void {
  for (const [name, all] of followers)
    if (topic === null || topic === name) for (const follower of all) follower.ask();
}
