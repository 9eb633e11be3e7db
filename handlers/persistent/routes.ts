import { ALL_STREAM, noneError } from '../../core/persistent/api.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { noteForAudit, queryOf } from '../http/context.ts';
import type { Call, Handler, Reply } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { featureOf, nodeOf } from '../http/presence.ts';
import { adminJson, commonHeaders, jsonReply } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import { baseOf, decodeSegment } from '../http/url.ts';
import type { GroupDoneDocument, GroupPageDocument } from '../documents/subscriptions.ts';
import { SUBSCRIPTION_DOCS } from '../openapi/subscription-paths.ts';
import { ACTIONS, create, remove, replayParked, reset, targetOf, update } from './group-changes.ts';
import { configOf, startFrom } from './config.ts';
import { detailsDocument, groupUrl, summaryDocument } from './group-documents.ts';
import { ack, groupIn, nack, parkedMessages, takeMessages } from './message-routes.ts';

/**
 * Persistent subscriptions over HTTP: groups are made, listed and deleted; messages.ts has what they do. The leader
 * has them.
 */

/** GET `/subscriptions`: all groups; a page of them where `offset` or `count` are given. */
const listAll: Handler = async (call, app) => {
  const groups = featureOf(call, app, 'subscriptions');
  negotiate(call, JSON_ONLY);
  const page = pageOf(call);
  const all = await groups.list();
  if (page === null)
    return adminJson(
      call,
      200,
      all.map((info) => summaryDocument(call, info)),
    );
  const { offset, count } = page;
  const subscriptions = all.slice(offset, offset + count).map((info) => summaryDocument(call, info));
  const links = [{ href: baseOf(call) + call.url.slice(call.origin.length), rel: 'self' }];
  return adminJson(call, 200, {
    links,
    offset,
    count: subscriptions.length,
    total: all.length,
    subscriptions,
  } satisfies GroupPageDocument);
};

/** Groups of a page, by default. */
const PAGE_COUNT = 100;

function pageOf(call: Call): { readonly offset: number; readonly count: number } | null {
  const [offset, count] = [queryOf(call, 'offset'), queryOf(call, 'count')];
  if (offset === undefined && count === undefined) return null;
  return { offset: integerOf(offset ?? '0', 0, 'offset'), count: integerOf(count ?? String(PAGE_COUNT), 1, 'count') };
}

function integerOf(text: string, min: number, name: string): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
  if (value < min) throw new SkuaError('bad_request', `${name} must be an integer of ${min} or more.`);
  return value;
}

/** GET `/subscriptions/{stream}`. */
const listOfStream: Handler = async (call, app) => {
  const groups = featureOf(call, app, 'subscriptions');
  negotiate(call, JSON_ONLY);
  const stream = decodeSegment(call.params['stream']!);
  const found = await groups.list(stream);
  if (found.length === 0) throw noneError(stream);
  return adminJson(
    call,
    200,
    found.map((info) => summaryDocument(call, info)),
  );
};

/** GET `/subscriptions/{stream}/{group}/info`. */
const details: Handler = async (call, app) => {
  const groups = featureOf(call, app, 'subscriptions');
  negotiate(call, JSON_ONLY);
  const { stream, group } = groupIn(call);
  return adminJson(call, 200, detailsDocument(call, await groups.info(stream, group)));
};

/** GET `/subscriptions/{stream}/{group}/history`: what charts of a group begin with. */
const history: Handler = (call, app) => {
  featureOf(call, app, 'subscriptions');
  negotiate(call, JSON_ONLY);
  const { stream, group } = groupIn(call);
  return jsonReply(call, nodeOf(call, app).history.group(stream, group));
};

/** PUT `/subscriptions/{stream}/{group}`: what is left out is as clients have it. */
const createGroup: Handler = async (call, app) => {
  const groups = featureOf(call, app, 'subscriptions');
  negotiate(call, JSON_ONLY);
  const named = namedIn(call);
  if (named.stream === ALL_STREAM)
    throw new SkuaError(
      'bad_request',
      'A group of $all is created over gRPC, where it can have a filter. Existing groups can be read, changed and deleted here.',
    );
  const { settings, from = 'start' } = await configOf(call, app);
  await create(call, groups, named, { settings, from });
  const reply = succeeded(call);
  return {
    ...reply,
    status: 201,
    statusText: 'Created',
    headers: { ...reply.headers, location: groupUrl(call, named.stream, named.group) },
  };
};

/** POST `/subscriptions/{stream}/{group}`: what is left out stays as it is. */
const updateGroup: Handler = async (call, app) => {
  const groups = featureOf(call, app, 'subscriptions');
  negotiate(call, JSON_ONLY);
  const named = namedIn(call);
  const present = await groups.info(named.stream, named.group);
  await update(call, groups, named, await configOf(call, app, present.settings));
  return succeeded(call);
};

/** DELETE `/subscriptions/{stream}/{group}`. */
const deleteGroup: Handler = async (call, app) => {
  const groups = featureOf(call, app, 'subscriptions');
  negotiate(call, JSON_ONLY);
  await remove(call, groups, namedIn(call));
  return succeeded(call);
};

/** POST `/subscriptions/{stream}/{group}/replayParked`. */
const replay: Handler = async (call, app) => {
  const groups = featureOf(call, app, 'subscriptions');
  negotiate(call, JSON_ONLY);
  const named = namedIn(call);
  const stopAt = queryOf(call, 'stopAt');
  await replayParked(call, groups, named, stopAt === undefined ? null : integerOf(stopAt, 0, 'stopAt'));
  return succeeded(call);
};

/** POST `/subscriptions/{stream}/{group}/reset?from=…`: the reference has no such thing. */
const resetGroup: Handler = async (call, app) => {
  const groups = featureOf(call, app, 'subscriptions');
  negotiate(call, JSON_ONLY);
  const named = namedIn(call);
  const from = queryOf(call, 'from');
  if (from === undefined)
    throw new SkuaError('bad_request', 'from is missing: give the position to start from, such as from=start.');
  await reset(call, groups, named, startFrom(from));
  return succeeded(call);
};

/** POST `/subscriptions/restart`. */
const restart: Handler = async (call, app) => {
  const groups = featureOf(call, app, 'subscriptions');
  negotiate(call, JSON_ONLY);
  await groups.restart();
  return succeeded(call);
};

function namedIn(call: Call): ReturnType<typeof groupIn> {
  const named = groupIn(call);
  noteForAudit(call, { target: targetOf(named) });
  return named;
}

const NOTHING_TO_SAY: GroupDoneDocument = { reason: '', result: 'Success' };
const DONE = JSON.stringify(NOTHING_TO_SAY, null, 2);

/** Clients parse every answer as JSON. */
function succeeded(call: Call): Reply {
  return {
    status: 200,
    statusText: 'OK',
    headers: { ...commonHeaders(call.methods), 'content-type': 'application/json; charset=utf-8' },
    body: DONE,
  };
}

const ALL = '/subscriptions';
const OF_STREAM = `${ALL}/:stream`;
const GROUP = `${OF_STREAM}/:group`;
const TAKE = operation('authenticated', 'leader', inRoom(takeMessages), SUBSCRIPTION_DOCS.take);
const LIST_OF_STREAM = operation('authenticated', 'leader', inRoom(listOfStream), SUBSCRIPTION_DOCS.listOfStream);
const ACK = operation('authenticated', 'leader', ack, SUBSCRIPTION_DOCS.ack);
const NACK = operation('authenticated', 'leader', nack, SUBSCRIPTION_DOCS.nack);
const POST = 'POST, OPTIONS';
const GET = 'GET, OPTIONS';

/** The paths of persistent subscriptions. */
export const SUBSCRIPTION_ROUTES = area({ tag: 'Subscriptions', feature: 'subscriptions' }, [
  {
    path: ALL,
    methods: GET,
    operations: { GET: operation('authenticated', 'leader', inRoom(listAll), SUBSCRIPTION_DOCS.listAll) },
  },
  {
    path: `${ALL}/restart`,
    methods: 'GET, POST, OPTIONS',
    // A stream may have this name, too.
    operations: {
      POST: operation('operators', 'leader', restart, SUBSCRIPTION_DOCS.restart, ACTIONS.restart),
      GET: operation(
        'authenticated',
        'leader',
        (call, app) => listOfStream(Object.assign(call, { params: { stream: 'restart' } }), app),
        SUBSCRIPTION_DOCS.listOfRestart,
      ),
    },
  },
  {
    path: `${ALL}/viewparkedmessages/:stream/:group/:event/backward/:count`,
    methods: GET,
    operations: {
      GET: operation('authenticated', 'leader', parkedMessages('backward'), SUBSCRIPTION_DOCS.parkedBackward),
    },
  },
  {
    path: `${ALL}/viewparkedmessages/:stream/:group/:event/forward/:count`,
    methods: GET,
    operations: {
      GET: operation('authenticated', 'leader', parkedMessages('forward'), SUBSCRIPTION_DOCS.parkedForward),
    },
  },
  { path: OF_STREAM, methods: GET, operations: { GET: LIST_OF_STREAM } },
  {
    path: `${GROUP}/info`,
    methods: GET,
    operations: { GET: operation('authenticated', 'leader', inRoom(details), SUBSCRIPTION_DOCS.details) },
  },
  {
    path: `${GROUP}/history`,
    methods: GET,
    operations: { GET: operation('authenticated', 'leader', inRoom(history), SUBSCRIPTION_DOCS.history) },
  },
  {
    path: `${GROUP}/replayParked`,
    methods: POST,
    operations: { POST: operation('operators', 'leader', replay, SUBSCRIPTION_DOCS.replay, ACTIONS.replay) },
  },
  {
    path: `${GROUP}/reset`,
    methods: POST,
    operations: { POST: operation('operators', 'leader', resetGroup, SUBSCRIPTION_DOCS.reset, ACTIONS.reset) },
  },
  { path: `${GROUP}/ack`, methods: POST, operations: { POST: ACK } },
  { path: `${GROUP}/nack`, methods: POST, operations: { POST: NACK } },
  { path: `${GROUP}/ack/:id`, methods: POST, operations: { POST: ACK } },
  { path: `${GROUP}/nack/:id`, methods: POST, operations: { POST: NACK } },
  { path: `${GROUP}/:count`, methods: GET, operations: { GET: TAKE } },
  {
    path: GROUP,
    methods: 'GET, PUT, POST, DELETE, OPTIONS',
    operations: {
      GET: TAKE,
      PUT: operation('operators', 'leader', createGroup, SUBSCRIPTION_DOCS.create, ACTIONS.create),
      POST: operation('operators', 'leader', updateGroup, SUBSCRIPTION_DOCS.update, ACTIONS.update),
      DELETE: operation('operators', 'leader', deleteGroup, SUBSCRIPTION_DOCS.delete, ACTIONS.remove),
    },
  },
]);
