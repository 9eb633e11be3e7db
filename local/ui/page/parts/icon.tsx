/** Drawn on 24 by 24 with one line; all of them stand for words that are there too. */
const PATHS = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-4H4zM14 8h6V4h-6z',
  streams: 'M4 6h16M4 12h11M4 18h16M19 12h1',
  event: 'M7 3h7l4 4v14H7zM14 3v4h4M10 12h5M10 16h5',
  all: 'M12 3 3 8l9 5 9-5zM3 12l9 5 9-5M3 16l9 5 9-5',
  chunks:
    'M4 4h4.5v4.5H4zM10 4h4.5v4.5H10zM16 4h4v4.5h-4zM4 10h4.5v4.5H4zM10 10h4.5v4.5H10zM16 10h4v4.5h-4zM4 16h4.5v4H4zM10 16h4.5v4H10z',
  subscriptions: 'M4 12h6M10 12c4 0 4-6 8-6M10 12h8M10 12c4 0 4 6 8 6M17 4l3 2-3 2M17 10l3 2-3 2M17 16l3 2-3 2',
  webhook: 'M8.5 8.5a4 4 0 1 1 6.5 3l3 5.5M12 8l-4.5 8M18 17h-9M7.5 20a3.5 3.5 0 0 1-2.8-5.5M18 20.5a3.5 3.5 0 0 0 0-7',
  scavenge: 'M14 4l6 6M17 7l-7 7M12 9l3 3-4 8c-3 0-6-1-8-4zM6.5 15.5l2 3',
  backup: 'M4 7c0-4 16-4 16 0v10c0 4-16 4-16 0zM4 7c0 4 16 4 16 0M4 12c0 4 16 4 16 0',
  cluster:
    'M12 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM5 20a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM19 20a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM10.5 8.5 6.5 15M13.5 8.5l4 6.5M7.5 17.5h9',
  metrics: 'M4 4v16h16M7 15l4-5 3 3 5-7',
  options: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM9 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  users:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20c0-4 3-6 6.5-6s6.5 2 6.5 6M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14.5c2 .8 3.5 2.6 3.5 5.5',
  user: 'M12 11.5a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.5c0-4.5 3.5-6.5 7.5-6.5s7.5 2 7.5 6.5',
  audit: 'M9 4H6v17h12V4h-3M9 3h6v3H9zM9 12l2 2 4-4M9 18h6',
  logs: 'M5 4h14v16H5zM8 8l2 2-2 2M12 13h4',
  shield: 'M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6z',
  licence: 'M12 14a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM9 13l-2 8 5-3 5 3-2-8',
  certificate: 'M4 5h16v11h-6M4 5v11h5M8 9h8M12 14a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM11 19l-1 3 2-1 2 1-1-3',
  erase: 'M9 20h11M4 15l9-10 7 7-7 8H9zM8.5 10l7 7',
  search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM20 20l-5-5',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6L6 18',
  check: 'M5 12.5l4.5 4.5L19 7',
  down: 'M6 9l6 6 6-6',
  up: 'M6 15l6-6 6 6',
  right: 'M9 6l6 6-6 6',
  left: 'M15 6l-6 6 6 6',
  first: 'M18 6l-6 6 6 6M12 6l-6 6 6 6',
  last: 'M6 6l6 6-6 6M12 6l6 6-6 6',
  warning: 'M12 4l9.5 16.5h-19zM12 10v4.5M12 17.5v.2',
  error: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7.5v5.5M12 16.3v.2',
  info: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5.5M12 7.5v.2',
  help: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9.5 9.5c0-3.5 5-3.5 5-.2 0 2-2.5 2.2-2.5 4.2M12 16.6v.2',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
  contrast: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 3v18M12 7h6.5M12 11h9M12 15h8.5',
  logout: 'M10 4H4v16h6M9 12h11M16 8l4 4-4 4',
  external: 'M13 5h6v6M19 5l-9 9M10 6H5v13h13v-5',
  refresh: 'M20 5v5h-5M4 19v-5h5M19.5 10A8 8 0 0 0 5.5 7.5M4.5 14a8 8 0 0 0 14 2.5',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5.5M13.5 11v5.5',
  edit: 'M5 19l1-4L16 5l3 3L9 18zM14 7l3 3',
  lock: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3',
  key: 'M8 19a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM11 12l8-8M16 7l3 3',
  disk: 'M5 5h14v14H5zM8 5v6h8V5M8 19v-4h8v4',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5.5l3.5 2',
  more: 'M5.5 13a1 1 0 1 0 0-2 1 1 0 0 0 0 2zM12 13a1 1 0 1 0 0-2 1 1 0 0 0 0 2zM18.5 13a1 1 0 1 0 0-2 1 1 0 0 0 0 2z',
  filter: 'M4 5h16l-6 8v6l-4-2v-4z',
  live: 'M12 13.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM8 16a5.5 5.5 0 0 1 0-8M16 8a5.5 5.5 0 0 1 0 8M5 19a10 10 0 0 1 0-14M19 5a10 10 0 0 1 0 14',
  play: 'M8 5l11 7-11 7z',
  pause: 'M9 5v14M15 5v14',
  stop: 'M6 6h12v12H6z',
  copy: 'M9 9h11v11H9zM15 9V4H4v11h5',
  download: 'M12 4v11M7 10.5l5 5 5-5M5 20h14',
  upload: 'M12 16V5M7 9.5l5-5 5 5M5 20h14',
  link: 'M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1-1',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({
  name,
  size = 18,
  class: className = '',
}: {
  readonly name: IconName;
  readonly size?: number;
  readonly class?: string;
}) {
  return (
    <svg
      class={`icon ${className}`}
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.75"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
