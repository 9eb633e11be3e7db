import type { Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { nodeOf } from '../http/presence.ts';
import { jsonReply } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import { ACTIVITY_HISTORY_DOC, OVERVIEW_DOC } from '../openapi/inspection-paths.ts';

/** GET `/admin/overview`: how the node is, in one answer for callers that ask every few seconds. */
const overview: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  return jsonReply(call, await nodeOf(call, app).overview());
};

/** GET `/admin/overview/history`: what charts begin with. */
const activityHistory: Handler = (call, app) => {
  negotiate(call, JSON_ONLY);
  return jsonReply(call, nodeOf(call, app).history.activity());
};

/** The paths of the overview. */
export const OVERVIEW_ROUTES = area({ tag: 'Administration', offBy: 'disableAdminUi' }, [
  {
    path: '/admin/overview',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', inRoom(overview), OVERVIEW_DOC) },
  },
  {
    path: '/admin/overview/history',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', inRoom(activityHistory), ACTIVITY_HISTORY_DOC) },
  },
]);
