import { SkuaError } from '../../core/base/errors.ts';
import type { App, AppFeatures, Call } from './context.ts';
import type { NodeControl } from './node-control.ts';
import type { Route } from './route.ts';

/** Whether what a route needs is there: connectors, schedules and backups are not everywhere. */
export function isPresent(
  { features, security }: Pick<App, 'features' | 'security'>,
  { feature }: Pick<Route, 'feature'>,
): boolean {
  if (feature === undefined) return true;
  return (feature === 'users' ? security : features[feature]) != null;
}

/** What handlers ask for, and why it may not be there. */
const ABSENT = {
  cluster: 'this node is not a cluster member',
  subscriptions: 'persistent subscriptions are not available',
  webhooks: 'connectors are disabled on this node',
  autoScavenge: 'scavenges are not scheduled on this node',
  backups: 'this node makes no backups',
  erasure: 'this node has no files of its own to search',
} as const satisfies { readonly [F in keyof AppFeatures]?: string };

/** What a handler needs. Errors: `not_found` where it is not there: its paths are unknown then. */
export function featureOf<F extends keyof typeof ABSENT>(
  call: Call,
  { features }: App,
  name: F,
): NonNullable<AppFeatures[F]> {
  const feature = features[name];
  if (feature !== null && feature !== undefined) return feature;
  call.methods = '';
  throw new SkuaError('not_found', `There is nothing at ${call.path}: ${ABSENT[name]}.`);
}

/** Errors: `not_found` where the routes of scavenges are served elsewhere. */
export function scavengerOf({ scavenger }: App): NonNullable<App['scavenger']> {
  if (scavenger === null) throw new SkuaError('not_found', 'Scavenges are handled by another function.');
  return scavenger;
}

/** Errors: `bad_request` where no cluster gives orders. */
export function ordersOf(app: App): NonNullable<AppFeatures['scavengeOrders']> {
  const { scavengeOrders } = app.features;
  if (scavengeOrders !== null && scavengeOrders !== undefined) return scavengeOrders;
  throw new SkuaError(
    'bad_request',
    'This node accepts no orders from a cluster: leave out clusterScavengeId and attempt',
  );
}

/** The node around the handlers. Throws `not_found` where there is none: its routes are absent then. */
export function nodeOf(call: Call, app: App): NodeControl {
  if (app.node === null) throw new SkuaError('not_found', `There is nothing at ${call.path}.`);
  return app.node;
}
