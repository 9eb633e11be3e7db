import { SkuaError } from '../../core/base/errors.ts';
import { queryOf } from '../http/context.ts';
import type { Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { featureOf, nodeOf } from '../http/presence.ts';
import { jsonReply } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import { WEBHOOK_ACTIVITY_DOC, WEBHOOK_HISTORY_DOC } from '../openapi/inspection-paths.ts';

/** GET `/admin/webhooks`: calls of senders by connector and outcome, and how many there are a second. */
const activity: Handler = (call, app) => {
  featureOf(call, app, 'webhooks');
  negotiate(call, JSON_ONLY);
  return jsonReply(call, nodeOf(call, app).webhooks());
};

/** GET `/admin/webhooks/history`: what charts of a connector begin with. */
const history: Handler = (call, app) => {
  featureOf(call, app, 'webhooks');
  negotiate(call, JSON_ONLY);
  const connector = queryOf(call, 'connector');
  if (connector === undefined)
    throw new SkuaError('bad_request', 'connector is missing: give the id of a connector, such as connector=orders.');
  return jsonReply(call, nodeOf(call, app).history.connector(connector));
};

/** The paths of the calls of senders; that of a connector could not be told from its id. */
export const WEBHOOK_ACTIVITY_ROUTES = area({ tag: 'Administration', feature: 'webhooks', offBy: 'disableAdminUi' }, [
  {
    path: '/admin/webhooks',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', inRoom(activity), WEBHOOK_ACTIVITY_DOC) },
  },
  {
    path: '/admin/webhooks/history',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', inRoom(history), WEBHOOK_HISTORY_DOC) },
  },
]);
