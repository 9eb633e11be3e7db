import type { Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { featureOf, nodeOf } from '../http/presence.ts';
import { jsonReply } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import { WEBHOOK_ACTIVITY_DOC } from '../openapi/inspection-paths.ts';

/** GET `/admin/webhooks`: calls of senders by connector and outcome, and how many there are a second. */
const activity: Handler = (call, app) => {
  featureOf(call, app, 'webhooks');
  negotiate(call, JSON_ONLY);
  return jsonReply(call, nodeOf(call, app).webhooks());
};

/** The path of the calls of senders; that of a connector could not be told from its id. */
export const WEBHOOK_ACTIVITY_ROUTES = area({ tag: 'Administration', feature: 'webhooks', offBy: 'disableAdminUi' }, [
  {
    path: '/admin/webhooks',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', inRoom(activity), WEBHOOK_ACTIVITY_DOC) },
  },
]);
