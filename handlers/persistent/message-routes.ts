import { answerId } from '../../core/persistent/api.ts';
import type { Delivery, NackAction } from '../../core/persistent/api.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { timestampText } from '../../core/base/time.ts';
import { queryOf } from '../http/context.ts';
import type { App, Call, Handler, Reply } from '../http/context.ts';
import { indent, jsonString } from '../http/json-text.ts';
import { COMPETING_KINDS, negotiate, PAGE_KINDS } from '../http/negotiate.ts';
import { featureOf } from '../http/presence.ts';
import { ASK_AGAIN, changing, empty } from '../http/reply.ts';
import { decodeSegment } from '../http/url.ts';
import { withoutForbidden } from '../streams/access.ts';
import { embedLevelOf, Entries, FeedDocument, linkObject, streamFeed } from '../streams/atom-feed.ts';
import type { EmbedLevel } from '../streams/atom-feed.ts';
import { countOf, feedReply, numberOf, pageOptions, slicedReply } from '../streams/read-events.ts';
import { mayProcess } from './group-changes.ts';
import type { Group } from './group-changes.ts';
import { groupUrl } from './group-documents.ts';

/** Messages of groups over HTTP, taken and answered request by request. */

/** Messages that a request may ask for. */
const MESSAGES_MAX = 100;
/** Ids that one request may answer. */
const ANSWERS_MAX = 1_000;

export function groupIn({ params }: Call): Group {
  return { stream: decodeSegment(params['stream']!), group: decodeSegment(params['group']!) };
}

/**
 * GET `/subscriptions/{stream}/{group}[/{count}]`: what there is at once. The caller has the message timeout to
 * answer.
 */
export const takeMessages: Handler = async (call, app) => {
  const groups = featureOf(call, app, 'subscriptions');
  const { stream, group } = groupIn(call);
  const chosen = negotiate(call, COMPETING_KINDS);
  const count = messagesOf(call.params['count']);
  await mayProcess(call, app, stream);
  const level = embedLevelOf(queryOf(call, 'embed'));
  const taken = await groups.take(stream, group, count);
  const events = taken.map(({ event }) => ({ ...event }));
  await withoutForbidden(call, app, events);
  const shown = taken.map(({ retryCount }, i) => ({ event: events[i]!, retryCount }));
  return slicedReply(
    call,
    app,
    messagesFeed(call, { stream, group }, count, shown, level, chosen.author),
    chosen,
    ASK_AGAIN,
  );
};

function messagesOf(text: string | undefined): number {
  const count = text === undefined ? 1 : /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > MESSAGES_MAX)
    throw new SkuaError('invalid_count', `The count must be an integer from 1 to ${MESSAGES_MAX}.`);
  return count;
}

/** A feed of what is to be worked on, newest first as in every feed, each with where to answer it. */
function messagesFeed(
  call: Call,
  named: Group,
  count: number,
  taken: readonly Delivery[],
  level: EmbedLevel,
  author: string,
): FeedDocument {
  const url = groupUrl(call, named.stream, named.group);
  const ids = taken.map(({ event }) => answerId(event)).join(',');
  const answers: [string, string][] =
    taken.length === 0
      ? []
      : [
          ['ackAll', `${url}/ack?ids=${ids}`],
          ['nackAll', `${url}/nack?ids=${ids}`],
        ];
  const links = [...answers, ['previous', `${url}/${count}`] as const, ['self', url] as const]
    .map(([relation, uri]) => linkObject(uri, relation, 3))
    .join(`,${indent(2)}`);
  const newest = taken.at(-1)?.event;
  const updated = newest === undefined ? '0001-01-01T00:00:00Z' : timestampText(newest.createdMs, newest.createdTicks);
  const head =
    `{\n  "title": ${jsonString(`Messages for '${named.stream}/${named.group}'`)},\n  "id": ${jsonString(url)},\n  "updated": "${updated}",\n` +
    `  "author": {\n    "name": "${author}"\n  },\n  "headOfStream": false,\n  "links": [${indent(2)}${links}${indent(1)}],\n` +
    '  "entries": [';
  const shown = taken.toReversed().map(({ event, retryCount }) => ({
    event,
    competing: {
      retryCount,
      links: [
        ['ack', `${url}/ack/${answerId(event)}`],
        ['nack', `${url}/nack/${answerId(event)}`],
      ] as const,
    },
  }));
  return new FeedDocument(head, new Entries(call, level, author, 3), shown);
}

/** POST `…/ack/{id}` and `…/ack?ids=…`: what is unknown, or was answered, is ignored. */
export const ack: Handler = (call, app) =>
  answer(call, app, (stream, group, ids) => featureOf(call, app, 'subscriptions').ack(stream, group, ids));

/** POST `…/nack/{id}` and `…/nack?ids=…`, with what is to become of them. */
export const nack: Handler = (call, app) => {
  const action = actionOf(call);
  return answer(call, app, (stream, group, ids) =>
    featureOf(call, app, 'subscriptions').nack(stream, group, ids, action, ''),
  );
};

async function answer(
  call: Call,
  app: App,
  carryOut: (stream: string, group: string, ids: readonly string[]) => Promise<void>,
): Promise<Reply> {
  const { stream, group } = groupIn(call);
  const ids = idsOf(call);
  await mayProcess(call, app, stream);
  await carryOut(stream, group, ids);
  return empty(call, 202, 'Accepted');
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function idsOf(call: Call): readonly string[] {
  const { id } = call.params;
  const ids = id === undefined ? (queryOf(call, 'ids') ?? '').split(',', ANSWERS_MAX + 1) : [decodeSegment(id)];
  if (ids.length > ANSWERS_MAX)
    throw new SkuaError(
      'bad_request',
      `More than ${ANSWERS_MAX} messages can't be acknowledged at once: send several requests.`,
    );
  for (const each of ids)
    if (!UUID.test(each)) throw new SkuaError('bad_request', `'${each.slice(0, 64)}' is not a message id: give UUIDs.`);
  return ids;
}

const ACTIONS: ReadonlyMap<string, NackAction> = new Map([
  ['park', 'Park'],
  ['retry', 'Retry'],
  ['skip', 'Skip'],
  ['stop', 'Stop'],
]);

function actionOf(call: Call): NackAction {
  const text = queryOf(call, 'action');
  const action = text === undefined ? 'Unknown' : ACTIONS.get(text.toLowerCase());
  if (action === undefined)
    throw new SkuaError(
      'bad_request',
      'action must be park, retry, skip or stop; without it the message is sent again.',
    );
  return action;
}

/**
 * GET `/subscriptions/viewparkedmessages/{stream}/{group}/{event}/{backward|forward}/{count}`: for callers that may
 * read the stream, of groups that there are. Links lead to the stream of what is parked itself.
 */
export function parkedMessages(direction: 'backward' | 'forward'): Handler {
  return async (call, app) => {
    const groups = featureOf(call, app, 'subscriptions');
    const { stream, group } = groupIn(call);
    const { event = '', count: asked = '' } = call.params;
    const chosen = negotiate(call, PAGE_KINDS);
    const count = countOf(asked);
    await mayProcess(call, app, stream);
    const parked = await groups.parkedStream(stream, group);
    const isHead = event === 'head';
    if (isHead && direction === 'forward')
      throw new SkuaError('invalid_event_number', "'head' is only for paging backward: give a number to page forward.");
    const level = embedLevelOf(queryOf(call, 'embed'));
    const page = await app.store.readStream(parked, {
      direction,
      from: isHead ? 'end' : numberOf(event),
      count,
      resolveLinks: true,
      ...pageOptions(call, app, chosen, level),
    });
    await withoutForbidden(call, app, page.events);
    return feedReply(call, app, changing(app, null), chosen, () =>
      streamFeed(call, page, { direction, isHead, count }, level, chosen.author),
    );
  };
}
