import type { AppOptions } from './context.ts';
import { openApiRoute } from './openapi.ts';
import type { Route } from './route.ts';
import { ADMIN_ROUTES } from './routes-admin.ts';
import { AUTO_SCAVENGE_ROUTES } from './routes-auto-scavenge.ts';
import { BACKUP_ROUTES } from './routes-backup.ts';
import { CONNECTOR_ROUTES } from './routes-connectors.ts';
import { NODE_ROUTES } from './routes-node.ts';
import { SCAVENGE_ROUTES } from './routes-scavenge.ts';
import { STREAM_ROUTES } from './routes-streams.ts';
import { USERS_ROUTES } from './routes-users.ts';

/** Every path, in the order in which they are tried; the first that matches answers. */
export const ROUTES: readonly Route[] = [...STREAM_ROUTES, ...SCAVENGE_ROUTES, ...AUTO_SCAVENGE_ROUTES, ...BACKUP_ROUTES, ...USERS_ROUTES, ...CONNECTOR_ROUTES, ...ADMIN_ROUTES, ...NODE_ROUTES, openApiRoute(routesFor)];

/** The paths that a node with these options has. */
export function routesFor(options: AppOptions): readonly Route[] {
  const isOff = (path: string) => (options.disableAdminUi && (path === '/' || path.startsWith('/admin/')))
    || (options.disableStatsOnHttp && (path === '/metrics' || path.startsWith('/stats')))
    || (options.disableGossipOnHttp && path === '/gossip')
    || (options.disableAtomPub && path.startsWith('/streams/') && !path.startsWith('/streams/%24scavenges'));
  return ROUTES.filter(({ path }) => !isOff(path));
}
