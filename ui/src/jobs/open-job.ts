import { signal } from "@preact/signals";

/** The job of the open page, for the title and the breadcrumbs. */
export const openJob = signal<{ readonly id: string; readonly name: string } | null>(null);
