import { SETTING_STREAM } from '../../core/attributes/format/setting.ts';
import { TOMBSTONE } from '../../core/log/format/records.ts';
import { USER_STREAM_PREFIX } from '../../core/security/format/user.ts';
import type { NewEvent } from '../../core/streams/api.ts';
import { parseMetadata } from '../../core/streams/format/metadata.ts';
import { MARKS_STREAM } from '../../core/streams/format/marks.ts';
import { SETTINGS_STREAM } from '../../core/streams/format/names.ts';
import type { App, Audited } from '../http/context.ts';
import { noteForAudit } from '../http/context.ts';

/** What an append does, as the audit records it. */
interface AuditedWrite {
  audited: Audited | null;
}

/** Rights that are changed, and events that are redacted, by writing to a stream, whatever route that goes by. */
export function auditWrite(call: AuditedWrite, stream: string): void {
  if (!stream.startsWith('$')) return;
  if (stream.startsWith('$$')) call.audited = { action: 'access-list.change', target: stream.slice(2), details: null };
  else if (stream === SETTINGS_STREAM) call.audited = { action: 'access-list.change', target: stream, details: null };
  else if (stream === MARKS_STREAM) call.audited = { action: 'event.redact', target: stream, details: null };
  else if (stream === SETTING_STREAM) call.audited = { action: 'index.set', target: stream, details: null };
  else if (stream.startsWith(USER_STREAM_PREFIX))
    call.audited = { action: 'user.write', target: stream.slice(USER_STREAM_PREFIX.length), details: null };
}

/** Metadata matters to the audit where it has an access list, or takes one away, or deletes the stream. */
export async function noteMetadata(
  call: AuditedWrite,
  app: App,
  stream: string,
  events: readonly NewEvent[],
): Promise<void> {
  const last = events.at(-1);
  const metadata = last === undefined ? {} : parseMetadata(last.data, last.isJson, 1);
  const before = (await app.store.streamInfo(stream)).metadata;
  if (metadata.acl !== undefined)
    noteForAudit(call, {
      details: Object.fromEntries(Object.entries(metadata.acl).filter(([, roles]) => roles !== undefined)),
    });
  else if (before.acl !== undefined) noteForAudit(call, { details: { removed: true } });
  else if (metadata.truncateBefore === TOMBSTONE) noteForAudit(call, { action: 'stream.delete' });
  else call.audited = null;
}
