import { SkuaError } from '../../core/base/errors.ts';
import type { AllPosition } from '../../core/streams/api.ts';
import { STREAMS_MAX } from '../../core/streams/find-names/find-names.ts';
import type { FoundStream, NamesWanted } from '../../core/streams/streams.ts';
import { timestampText } from '../../core/base/time.ts';
import type { StreamDocument, StreamsDocument } from '../documents/streams.ts';
import { queryOf } from '../http/context.ts';
import type { App, Call, Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { adminJson } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import { STREAM_NAMES_DOC } from '../openapi/inspection-paths.ts';
import { mayRead } from './access.ts';

/** Streams of an answer by default. */
const COUNT_DEFAULT = 50;
/** Longest text to look for, in characters. */
const SEARCH_LENGTH_MAX = 200;

/**
 * GET `/admin/streams`: streams written or created lately, or those with a text in their names; what the caller may not
 * read is left out.
 */
const streamNames: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  const { streams, from, to, logEnd, next } = await app.streamNames.find(wantedOf(call));
  const shown = await readable(call, app, streams);
  return adminJson(call, 200, {
    streams: shown.map(streamDocument),
    hidden: streams.length - shown.length,
    from,
    to,
    logEnd,
    next: next === null ? null : `${next.commit}-${next.prepare}`,
  } satisfies StreamsDocument);
};

function streamDocument({ stream, lastEventNumber, isDeleted, event }: FoundStream): StreamDocument {
  return {
    stream,
    lastEventNumber,
    isDeleted,
    position: event.position,
    eventNumber: event.number,
    writtenAt: timestampText(event.createdMs, event.createdTicks),
  };
}

/** Operators learn no names of streams that their access lists keep from them. */
async function readable(call: Call, app: App, streams: readonly FoundStream[]): Promise<FoundStream[]> {
  const shown: FoundStream[] = [];
  for (const each of streams) if (await mayRead(call, app, each.stream)) shown.push(each);
  return shown;
}

function wantedOf(call: Call): NamesWanted {
  const search = queryOf(call, 'search') ?? null;
  if (search !== null && search.length > SEARCH_LENGTH_MAX)
    throw new SkuaError('bad_request', `search has ${search.length} characters; the limit is ${SEARCH_LENGTH_MAX}.`);
  return {
    by: wordOf(call, 'recent', ['written', 'created']),
    search,
    match: wordOf(call, 'match', ['substring', 'prefix']),
    withSystem: wordOf(call, 'system', ['false', 'true']) === 'true',
    count: countOf(queryOf(call, 'count')),
    from: cursorOf(queryOf(call, 'from')),
  };
}

/** The first of the words is the default. */
function wordOf<const W extends string>(call: Call, name: string, words: readonly [W, ...W[]]): W {
  const text = queryOf(call, name);
  const word = text === undefined ? words[0] : words.find((each) => each === text);
  if (word === undefined) throw new SkuaError('bad_request', `${name} must be ${words.join(' or ')}.`);
  return word;
}

function countOf(text: string | undefined): number {
  if (text === undefined) return COUNT_DEFAULT;
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > STREAMS_MAX) throw new SkuaError('bad_request', `count must be 1 to ${STREAMS_MAX}.`);
  return count;
}

function cursorOf(text: string | undefined): AllPosition | 'end' {
  if (text === undefined) return 'end';
  const match = /^(\d{1,15})-(\d{1,15})$/.exec(text);
  if (match === null)
    throw new SkuaError(
      'bad_request',
      'from must be the next of an earlier answer. Leave it out to start at the end of the log.',
    );
  return { commit: Number(match[1]), prepare: Number(match[2]) };
}

/** The path of names of streams. */
export const STREAM_NAMES_ROUTES = area({ tag: 'Administration', offBy: 'disableAdminUi' }, [
  {
    path: '/admin/streams',
    methods: 'GET, OPTIONS',
    operations: { GET: operation('operators', 'here', inRoom(streamNames), STREAM_NAMES_DOC) },
  },
]);
