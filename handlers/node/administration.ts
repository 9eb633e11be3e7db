import { SkuaError } from '../../core/base/errors.ts';
import type { AuditAction } from '../../core/ports/audit.ts';
import type { MergeIndexesDocument, MessageDocument, ReloadResult } from '../documents/node.ts';
import { noteForAudit } from '../http/context.ts';
import type { Handler } from '../http/context.ts';
import { ADMIN_KINDS, negotiate } from '../http/negotiate.ts';
import { nodeOf } from '../http/presence.ts';
import { adminReply, empty } from '../http/reply.ts';
import { area, operation } from '../http/route.ts';
import type { OperationDoc, RouteOfArea } from '../http/route.ts';
import { decodeSegment } from '../http/url.ts';
import { ADMIN_DOCS } from '../openapi/administration-paths.ts';
import { loginEcho } from '../users/users.ts';

/** Directing the node. Bodies are not read, and nothing is asked of their type. */

const INT32_MAX = 2_147_483_647;
const INT32_MIN = -2_147_483_648;

/** POST `/admin/shutdown`: the answer goes out before the node stops, which lets requests under way end. */
const shutdown: Handler = (call, app) => {
  nodeOf(call, app).shutdown();
  return empty(call, 200, 'OK');
};

/**
 * POST `/admin/reloadconfig`: answered when the reload has ended, with what it changed; 409 when it changed nothing
 * because something failed.
 */
const reloadConfig: Handler = async (call, app) => {
  const node = nodeOf(call, app);
  const chosen = negotiate(call, ADMIN_KINDS);
  const result = await node.reload();
  noteForAudit(call, {
    details: { options: result.options.map(({ name }) => name), certificatesChanged: result.certificatesChanged },
  });
  return adminReply(call, chosen, result, reloadText(result));
};

function reloadText({ options, ignoredOptions, certificatesChanged, certificates }: ReloadResult): string {
  const lines = [
    ...options.map(({ name, from, to }) => `${name}: ${from} -> ${to}`),
    ...(ignoredOptions.length === 0 ? [] : [`After a restart: ${ignoredOptions.join(', ')}`]),
    ...(certificates.length === 0 ? [] : [certificatesChanged ? 'Certificates changed' : 'Certificates unchanged']),
    ...certificates.map(
      ({ kind, subject, serial, daysLeft }) => `${kind}: ${subject}, serial ${serial}, ${daysLeft} days left`,
    ),
  ];
  return ['Reloaded', ...lines].join('\n');
}

/** POST `/admin/mergeindexes`: the merge goes on in the background; its id stands in the log. */
const mergeIndexes: Handler = (call, app) => {
  const node = nodeOf(call, app);
  const chosen = negotiate(call, ADMIN_KINDS);
  const mergeIndexesId = node.mergeIndexes();
  return adminReply(
    call,
    chosen,
    { mergeIndexesId } satisfies MergeIndexesDocument,
    `MergeIndexesId: ${mergeIndexesId}`,
  );
};

/** POST `/admin/node/priority/{n}`: until the node is restarted. */
const setPriority: Handler = async (call, app) => {
  const node = nodeOf(call, app);
  const text = decodeSegment(call.params['n']!);
  const priority = /^[+-]?\d{1,20}$/.test(text) ? Number(text) : Number.NaN;
  if (!(priority >= INT32_MIN && priority <= INT32_MAX))
    throw new SkuaError('bad_request', 'nodePriority must be an integer.');
  await node.setPriority(priority === 0 ? 0 : priority);
  return empty(call, 200, 'OK');
};

/** POST `/admin/node/resign`: what came of it, in words. */
const resign: Handler = async (call, app) => {
  const node = nodeOf(call, app);
  const chosen = negotiate(call, ADMIN_KINDS);
  const message = await node.resign();
  return adminReply(call, chosen, { message } satisfies MessageDocument, message);
};

/** The paths of node administration. */
export const ADMIN_ROUTES = area({ tag: 'Administration', offBy: 'disableAdminUi' }, [
  order('/admin/shutdown', shutdown, ADMIN_DOCS.shutdown, 'node.shutdown'),
  order('/admin/reloadconfig', reloadConfig, ADMIN_DOCS.reload, 'node.reload'),
  order('/admin/mergeindexes', mergeIndexes, ADMIN_DOCS.mergeIndexes, 'index.merge'),
  order('/admin/node/priority/:n', setPriority, ADMIN_DOCS.setPriority, 'node.priority'),
  order('/admin/node/resign', resign, ADMIN_DOCS.resign, 'node.resign'),
  {
    path: '/admin/login',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('authenticated', 'here', loginEcho, ADMIN_DOCS.login) },
  },
]);

function order(path: string, handler: Handler, doc: OperationDoc, audit: AuditAction): RouteOfArea {
  return { path, methods: 'POST, OPTIONS', operations: { POST: operation('operators', 'here', handler, doc, audit) } };
}
