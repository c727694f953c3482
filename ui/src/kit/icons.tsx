// Icons as paths on a 16 × 16 grid, drawn in the text color.

const paths = {
  overview: "M2 9h4v5H2zM10 2h4v12h-4zM6 5h4v9H6z",
  jobs: "M2.5 4h11M2.5 8h11M2.5 12h11",
  clock: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 5v3.2l2.2 1.4",
  retry: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3",
  dead: "M8 2.2 14.4 13H1.6zM8 6.4v3M8 11.2v.1",
  queues: "M2.5 3.5h11v3h-11zM2.5 9.5h11v3h-11z",
  calendar: "M2.5 4h11v9.5h-11zM2.5 7h11M5.5 2.2V5M10.5 2.2V5",
  workers: "M3 3h10v10H3zM6 6h4v4H6zM1 6h2M1 10h2M13 6h2M13 10h2M6 1v2M10 1v2M6 13v2M10 13v2",
  limits: "M2.5 12a6 6 0 1 1 11 0M8 9.5l2.8-3.2",
  database:
    "M3 4c0-1.1 2.2-2 5-2s5 .9 5 2v8c0 1.1-2.2 2-5 2s-5-.9-5-2zM3 4c0 1.1 2.2 2 5 2s5-.9 5-2M3 8c0 1.1 2.2 2 5 2s5-.9 5-2",
  audit: "M4 1.8h5.5L13 5.3v8.9H4zM9.3 2v3.6h3.5M6 8.5h4.5M6 11h4.5",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.4 10.4 14 14",
  close: "M4 4l8 8M12 4l-8 8",
  menu: "M2 4h12M2 8h12M2 12h12",
  more: "M3 7.3a.7.7 0 1 0 0 1.4.7.7 0 0 0 0-1.4zM8 7.3a.7.7 0 1 0 0 1.4.7.7 0 0 0 0-1.4zM13 7.3a.7.7 0 1 0 0 1.4.7.7 0 0 0 0-1.4z",
  check: "M3 8.5 6.5 12 13 4.5",
  play: "M4.5 2.8v10.4l8.3-5.2z",
  pause: "M5 3v10M11 3v10",
  trash: "M2.5 4.5h11M6 4V2.5h4V4M4 4.5l.6 9h6.8l.6-9",
  stop: "M4 4h8v8H4z",
  drain: "M8 1.8c2.7 3.2 4.2 5.3 4.2 7.6a4.2 4.2 0 0 1-8.4 0C3.8 7.1 5.3 5 8 1.8z",
  plus: "M8 3v10M3 8h10",
  copy: "M5.5 5.5h8v8h-8zM3 10.5H2.5v-8h8V3",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.6M8 13.4V15M1 8h1.6M13.4 8H15M3 3l1.1 1.1M11.9 11.9 13 13M13 3l-1.1 1.1M4.1 11.9 3 13",
  moon: "M13 9.6A5.6 5.6 0 1 1 6.4 3 4.6 4.6 0 0 0 13 9.6z",
  auto: "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
  keyboard: "M1.5 4h13v8h-13zM4 7h.1M7 7h.1M10 7h.1M12 7h.1M5 9.7h6",
  dot: "M8 3.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9z",
  wait: "M4 2.5h8M4 13.5h8M5 2.5c0 4 6 5 6 11M11 2.5c0 4-6 5-6 11",
  minus: "M3.5 8h9",
  step: "M3 3h4v4H3zM9 9h4v4H9zM7 5h2.5v4",
  next: "M6 3l5 5-5 5",
  gear: "M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M12.6 3.4l-1.4 1.4M4.8 11.2l-1.4 1.4",
  star: "M8 2l1.8 3.8 4.2.5-3.1 2.9.8 4.1L8 11.3l-3.7 2 .8-4.1L2 6.3l4.2-.5z",
  download: "M8 2v8M4.8 7 8 10.2 11.2 7M2.5 13.5h11",
  layers: "M8 2 14 5 8 8 2 5zM2.5 8.2 8 11l5.5-2.8M2.5 11.2 8 14l5.5-2.8",
  columns: "M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10",
} as const;
export type IconName = keyof typeof paths;

/** For SVG pictures. */
export function iconPath(name: IconName): string {
  return paths[name];
}

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={paths[name]} />
    </svg>
  );
}

export function Logo() {
  return (
    <svg width="24" height="24" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" fill="var(--accent-fill)" />
      <path
        d="M10 7.5v17M22 7.5v17M10 16h12"
        stroke="var(--on-accent)"
        stroke-width="4"
        stroke-linecap="round"
        fill="none"
      />
    </svg>
  );
}
