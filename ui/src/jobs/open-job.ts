// The job whose page is open.
import { signal } from "@preact/signals";

/** The job whose page is open, for the title and the breadcrumbs. */
export const openJob = signal<{ readonly id: string; readonly name: string } | null>(null);
