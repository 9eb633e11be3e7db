import { isSkuaError, SkuaError } from '../../core/base/errors.ts';
import type { StreamAction } from '../../core/security/api.ts';
import type { Authorize, EventAccess, StoredEvent, StreamWrite } from '../../core/streams/api.ts';
import { parseLink } from '../../core/streams/format/links.ts';
import { isMetastream, isViewName } from '../../core/streams/format/names.ts';
import type { App, Call } from '../http/context.ts';

/** The access list of a stream decides what each caller may do with it. With security off nothing is asked. */

/** Throws, or rejects, unless the caller may do this. There is nothing to wait for where that is known at once. */
export function checkStream(call: Call, app: App, action: StreamAction, stream: string): void | Promise<void> {
  return app.security === null ? undefined : app.security.access.check(call.principal, action, stream);
}

/**
 * For a read by query: which of its events the caller may see, each by the list of its stream; no list of `$all` is
 * asked. The user is looked at again before each page. Throws where the caller may see nothing at all.
 */
export function eventAccess(call: Call, app: App): EventAccess | undefined {
  if (app.security === null) return undefined;
  const reader = app.security.access.readerOf(call.principal);
  return {
    begin: async () => {
      await checkCaller(call, app);
      await reader?.begin();
    },
    allows: (stream, metadata) => reader === null || reader.allows(stream, metadata),
  };
}

/** Of a view: which of its events the caller may see. Undefined for other streams, whose own list is asked. */
export function viewAccess(call: Call, app: App, stream: string): EventAccess | undefined {
  return isViewName(stream) ? eventAccess(call, app) : undefined;
}

/** Throws, or rejects, unless the caller may read the stream; a view is there for all, who see of it what they may. */
export function checkReading(call: Call, app: App, stream: string): void | Promise<void> {
  return isViewName(stream) ? eventAccess(call, app)?.begin() : checkStream(call, app, 'read', stream);
}

/** What decides a write in its turn, null for nothing. Throws, or rejects, where nothing could allow the write. */
export function authorizeWrite(
  call: Call,
  app: App,
  action: 'write' | 'delete',
  stream: string,
): Authorize | null | Promise<Authorize | null> {
  return app.security === null ? null : app.security.access.authorizeWrite(call.principal, action, stream);
}

/** The same for several writes, asked once for each stream. */
export async function authorizeWrites(call: Call, app: App, writes: readonly StreamWrite[]): Promise<StreamWrite[]> {
  const lists = new Map<string, Authorize | null>();
  for (const { stream } of writes)
    if (!lists.has(stream)) lists.set(stream, await authorizeWrite(call, app, 'write', stream));
  return writes.map((write) => ({ ...write, authorize: lists.get(write.stream) ?? undefined }));
}

/** Reads as long as the caller may read the stream. A reply that goes on for long asks again for each of its parts. */
export async function readAllowed<T>(call: Call, app: App, stream: string, read: () => Promise<T>): Promise<T> {
  // Of a view the caller is looked at where its page is read.
  if (!isViewName(stream)) await checkReader(call, app, stream);
  return read();
}

/**
 * For what operators learn of a stream, its length and metadata among it: throws, or rejects, unless the caller may
 * read both. The list of a stream that is deleted for ever went with it.
 */
export async function checkInspection(call: Call, app: App, stream: string): Promise<void> {
  await checkStream(call, app, 'read', stream);
  // What a metadata stream holds is the metadata of its stream, and was asked for.
  if (!isMetastream(stream)) await checkStream(call, app, 'metadataRead', stream);
}

/** The same, where the answer hides what the caller may not see. */
export function mayInspect(call: Call, app: App, stream: string): Promise<boolean> {
  return isAllowed(() => checkInspection(call, app, stream));
}

/** For each part of what goes on for long: throws, or rejects, once the user is another than when it began. */
export function checkCaller(call: Call, app: App): void | Promise<void> {
  const changed = app.security?.authenticator.hasChanged?.(call.principal) ?? false;
  if (changed === false) return undefined;
  return Promise.resolve(changed).then((isChanged) => {
    if (isChanged) throw new SkuaError('not_authenticated', 'The user has been changed: log in again.');
  });
}

/**
 * For each part of a long reply: throws once the user is another than when the request came, or may not read the stream
 * any more.
 */
export async function checkReader(call: Call, app: App, stream: string): Promise<void> {
  const known = checkCaller(call, app);
  if (known !== undefined) await known;
  const checking = checkStream(call, app, 'read', stream);
  if (checking !== undefined) await checking;
}

/**
 * Puts links whose target the caller may not read in the place of what they point to: a caller that may write a link
 * could read any stream through it otherwise. Such a link does not show either whether its target exists.
 */
export async function withoutForbidden(call: Call, app: App, events: StoredEvent[]): Promise<void> {
  if (app.security === null) return;
  const decided = new Map<string, boolean>();
  for (let i = 0; i < events.length; i++) {
    const event = events[i]!;
    const target = targetStreamOf(event);
    if (target === null) continue;
    let allowed = decided.get(target);
    if (allowed === undefined) {
      allowed = await mayRead(call, app, target);
      decided.set(target, allowed);
    }
    if (allowed) continue;
    if (event.link !== null) events[i] = event.link;
    else event.linkTargetMissing = false;
  }
}

/** The same for one event. */
export async function oneWithoutForbidden(call: Call, app: App, event: StoredEvent): Promise<StoredEvent> {
  if (app.security === null || targetStreamOf(event) === null) return event;
  const events = [event];
  await withoutForbidden(call, app, events);
  return events[0]!;
}

/** The stream that a link led to; null for an event that was not reached by a link. */
function targetStreamOf(event: StoredEvent): string | null {
  if (event.link !== null) return event.stream;
  return event.linkTargetMissing ? (parseLink(event.data)?.stream ?? null) : null;
}

/** Whether the caller may read a stream, where the answer hides what he may not. */
export function mayRead(call: Call, app: App, stream: string): Promise<boolean> {
  return isAllowed(() => checkStream(call, app, 'read', stream));
}

async function isAllowed(check: () => void | Promise<void>): Promise<boolean> {
  try {
    await check();
    return true;
  } catch (error) {
    if (isSkuaError(error, 'access_denied') || isSkuaError(error, 'not_authenticated')) return false;
    throw error;
  }
}
