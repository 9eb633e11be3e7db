import type { ComponentType } from 'preact';
import type { Need } from './api/page-session.ts';
import { match } from './lib/router.ts';
import type { IconName } from './parts/icon.tsx';

/** What a view is given: the variables of its path, decoded, and the query. */
export interface ViewProps {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

export interface View {
  /** Behind `/ui`; `:name` is a variable of one segment. */
  readonly path: string;
  /** In the menu, as heading and in the title of the window. */
  readonly title: string;
  readonly group: Group;
  readonly icon: IconName;
  readonly needs: Need;
  /** False: it is reached from other views, and stands in no menu. */
  readonly isInMenu?: boolean;
  load(): Promise<{ readonly default: ComponentType<ViewProps> }>;
}

/** The groups of the menu, in their order. */
export const GROUPS = ['Node', 'Data', 'Delivery', 'Upkeep', 'Access', 'System'] as const;
export type Group = (typeof GROUPS)[number];

/** Every view, in the order of the menu; the first that fits a path is shown. */
export const VIEWS: readonly View[] = [
  {
    path: '/',
    title: 'Overview',
    group: 'Node',
    icon: 'overview',
    needs: 'operators',
    load: () => import('./views/overview/overview.tsx'),
  },
  {
    path: '/metrics',
    title: 'Metrics',
    group: 'Node',
    icon: 'metrics',
    needs: 'authenticated',
    load: () => import('./views/metrics/metrics.tsx'),
  },
  {
    path: '/streams',
    title: 'Streams',
    group: 'Data',
    icon: 'streams',
    needs: 'authenticated',
    load: () => import('./views/streams/streams.tsx'),
  },
  {
    path: '/streams/:stream',
    title: 'Stream',
    group: 'Data',
    icon: 'streams',
    needs: 'authenticated',
    isInMenu: false,
    load: () => import('./views/streams/stream.tsx'),
  },
  {
    path: '/streams/:stream/:event',
    title: 'Event',
    group: 'Data',
    icon: 'event',
    needs: 'authenticated',
    isInMenu: false,
    load: () => import('./views/streams/event.tsx'),
  },
  {
    path: '/all',
    title: 'All events',
    group: 'Data',
    icon: 'all',
    needs: 'authenticated',
    load: () => import('./views/streams/all.tsx'),
  },
  {
    path: '/webhooks',
    title: 'Webhooks',
    group: 'Delivery',
    icon: 'webhook',
    needs: 'operators',
    load: () => import('./views/webhooks/webhooks.tsx'),
  },
  {
    path: '/webhooks/:connector',
    title: 'Webhook',
    group: 'Delivery',
    icon: 'webhook',
    needs: 'operators',
    isInMenu: false,
    load: () => import('./views/webhooks/webhook.tsx'),
  },
  {
    path: '/subscriptions',
    title: 'Subscriptions',
    group: 'Delivery',
    icon: 'subscriptions',
    needs: 'authenticated',
    load: () => import('./views/subscriptions/subscriptions.tsx'),
  },
  {
    path: '/subscriptions/:stream/:group',
    title: 'Subscription',
    group: 'Delivery',
    icon: 'subscriptions',
    needs: 'authenticated',
    isInMenu: false,
    load: () => import('./views/subscriptions/subscription.tsx'),
  },
  {
    path: '/chunks',
    title: 'Chunk map',
    group: 'Upkeep',
    icon: 'chunks',
    needs: 'operators',
    load: () => import('./views/chunks/chunks.tsx'),
  },
  {
    path: '/scavenge',
    title: 'Scavenge',
    group: 'Upkeep',
    icon: 'scavenge',
    needs: 'operators',
    load: () => import('./views/scavenge/scavenge.tsx'),
  },
  {
    path: '/auto-scavenge',
    title: 'Auto-scavenge',
    group: 'Upkeep',
    icon: 'clock',
    needs: 'authenticated',
    load: () => import('./views/auto-scavenge/auto-scavenge.tsx'),
  },
  {
    path: '/backups',
    title: 'Backups',
    group: 'Upkeep',
    icon: 'backup',
    needs: 'operators',
    load: () => import('./views/backups/backups.tsx'),
  },
  {
    path: '/users',
    title: 'Users',
    group: 'Access',
    icon: 'users',
    needs: 'administrators',
    load: () => import('./views/users/users.tsx'),
  },
  {
    path: '/options',
    title: 'Options',
    group: 'System',
    icon: 'options',
    needs: 'operators',
    load: () => import('./views/options/options.tsx'),
  },
  {
    path: '/log',
    title: 'Log',
    group: 'System',
    icon: 'logs',
    needs: 'operators',
    load: () => import('./views/log/log.tsx'),
  },
];

export interface Found {
  readonly view: View;
  readonly params: Readonly<Record<string, string>>;
}

export function viewAt(path: string): Found | null {
  for (const view of VIEWS) {
    const params = match(view.path, path);
    if (params !== null) return { view, params };
  }
  return null;
}

/** The view in whose place of the menu a path belongs: its own, or that of the view it was reached from. */
export function menuViewAt(path: string): View | null {
  const first = path.split('/')[1];
  return VIEWS.find((view) => view.isInMenu !== false && view.path.split('/')[1] === first) ?? null;
}
