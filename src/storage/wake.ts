/** A notification to sleeping workers and waiters, in this process and in others. */

/** Something happened in the database that a sleeping worker or waiter may care about. */
export type Wake =
  | {
      readonly kind: "work";
      readonly queue: string;
      readonly priority: number;
      /** Jobs of any priority of this queue were given back with their due times, this one or later: claims go back to it. */
      readonly from?: number;
    }
  | { readonly kind: "cancel"; readonly session: number }
  | { readonly kind: "stop"; readonly session: number }
  /** It was made quiet, or resumed. */
  | { readonly kind: "quiet"; readonly session: number }
  | { readonly kind: "settings" }
  /** Jobs that somebody watches have ended. */
  | { readonly kind: "ended" }
  /** Something changed, no telling what: look at everything. */
  | { readonly kind: "any" };
