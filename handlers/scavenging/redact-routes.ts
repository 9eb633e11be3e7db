import { SkuaError } from '../../core/base/errors.ts';
import { findRedacted, redact } from '../../core/streams/redact/redact.ts';
import type { RedactRequest } from '../../core/streams/redact/redact.ts';
import { readJson } from '../http/body.ts';
import { noteForAudit, queryOf } from '../http/context.ts';
import type { App, Call, Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { adminJson } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import type { RedactionDocument } from '../documents/redaction.ts';
import { REDACTION_DOCS } from '../openapi/redaction-paths.ts';

/** Redaction of single events over HTTP: they read as empty at once, and a scavenge removes their content. */

/** Largest body of POST `/admin/redact` in bytes: a thousand ids, a name, a reason. */
const BODY_BYTES_MAX = 65_536;

/** In a mark, where the node has no users. */
const ANONYMOUS = 'anonymous';

const REMAINS = {
  preview: 'Nothing was changed.',
  done: 'These events read as empty from now on. Their content stays in the files until the next scavenge of each node, and in backups that were made before it until they are pruned.',
  nothingNew: 'All of these events had been redacted before, so nothing was written.',
} as const;

/** POST `/admin/redact`; with `preview=true` only what it would take. */
const redactEvents: Handler = async (call, app) => {
  negotiate(call, JSON_ONLY);
  const isPreview = isPreviewOf(call);
  const request = await requestOf(call, app);
  noteForAudit(call, { target: request.stream, details: auditedOf(request, isPreview) });
  const { store, world } = app;
  const { stream, events, position } = isPreview
    ? { stream: request.stream, events: await findRedacted(store, request), position: null }
    : await redact(store, world.ids, call.principal.name ?? ANONYMOUS, request);
  const remains = REMAINS[isPreview ? 'preview' : position === null ? 'nothingNew' : 'done'];
  return adminJson(call, 200, { stream, events, position, remains } satisfies RedactionDocument);
};

function auditedOf({ numbers = [], ids = [], reason, metadata = [] }: RedactRequest, isPreview: boolean) {
  return {
    ...(numbers.length > 0 ? { events: numbers.map(String) } : { ids }),
    reason,
    ...(metadata.length > 0 && { metadata }),
    ...(isPreview && { preview: true }),
  };
}

function isPreviewOf(call: Call): boolean {
  const text = queryOf(call, 'preview') ?? 'false';
  if (text === 'true' || text === 'false') return text === 'true';
  throw new SkuaError('bad_request', 'preview must be true or false.');
}

async function requestOf(call: Call, app: App): Promise<RedactRequest> {
  const body = await readJson(call, app, Math.min(BODY_BYTES_MAX, app.options.bodyBytesMax));
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new SkuaError(
      'bad_json',
      'The body must be a JSON object such as {"stream": "orders-42", "events": [3], "reason": "card number"}.',
    );
  const { stream, events = [], ids = [], reason, metadata = [] } = body as Readonly<Record<string, unknown>>;
  if (typeof stream !== 'string' || stream === '')
    throw new SkuaError('bad_request', 'stream must be the name of a stream.');
  if (!isListOf(events, isEventNumber))
    throw new SkuaError('bad_request', 'events must be an array of event numbers, 0 or more each.');
  if (!isListOf(ids, isUuid)) throw new SkuaError('bad_request', 'ids must be an array of event ids, which are UUIDs.');
  if (typeof reason !== 'string') throw new SkuaError('bad_request', 'reason must be a text that says why.');
  if (!isListOf(metadata, isText))
    throw new SkuaError('bad_request', 'metadata must be an array of names that begin with $.');
  return { stream, numbers: events, ids, reason, metadata };
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function isListOf<T>(value: unknown, is: (each: unknown) => each is T): value is readonly T[] {
  return Array.isArray(value) && value.every(is);
}

function isEventNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isUuid(value: unknown): value is string {
  return isText(value) && UUID.test(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** The path of redaction. What is written is decided by the leader of a cluster, whichever member is asked. */
export const REDACT_ROUTES = area({ tag: 'Scavenging', offBy: 'disableAdminUi' }, [
  {
    path: '/admin/redact',
    methods: 'POST, OPTIONS',
    operations: {
      POST: operation('administrators', 'writes', inRoom(redactEvents), REDACTION_DOCS.redact, 'event.redact'),
    },
  },
]);
