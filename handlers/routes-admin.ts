import { mergeIndexes, reloadConfig, resign, setPriority, shutdown } from './admin-node.ts';
import { ADMIN_DOCS } from './openapi-admin.ts';
import { operation } from './route.ts';
import type { Handler } from './context.ts';
import type { OperationDoc, Route } from './route.ts';
import { loginEcho } from './users.ts';

/** The paths of node administration (http-api.md section 3.6). */
export const ADMIN_ROUTES: readonly Route[] = [
  order('/admin/shutdown', shutdown, ADMIN_DOCS.shutdown),
  order('/admin/reloadconfig', reloadConfig, ADMIN_DOCS.reload),
  order('/admin/mergeindexes', mergeIndexes, ADMIN_DOCS.mergeIndexes),
  order('/admin/node/priority/:n', setPriority, ADMIN_DOCS.setPriority),
  order('/admin/node/resign', resign, ADMIN_DOCS.resign),
  { path: '/admin/login', methods: 'GET, OPTIONS', operations: { GET: operation('authenticated', loginEcho, ADMIN_DOCS.login) } },
];

function order(path: string, handler: Handler, doc: OperationDoc): Route {
  return { path, methods: 'POST, OPTIONS', operations: { POST: operation('operators', handler, doc) } };
}
