import { SkuaError } from '../../core/base/errors.ts';
import type { EventStore } from '../../core/streams/api.ts';
import { checkReadableName } from '../../core/streams/format/names.ts';
import { findRedacted, redact } from '../../core/streams/redact/redact.ts';
import { systemIds } from '../../infra/system-ids.ts';
import type { RedactOptions, RedactResult } from './api.ts';
import { positionAt } from '../event-store/values.ts';

/** In a mark: a program of its own has no users. */
const BY = 'embedded';

/** Redacts, or tells what that would take; errors are in the words of the core. */
export async function redactEvents(
  store: EventStore,
  stream: string,
  { events = [], ids = [], reason, metadata = [], preview = false }: RedactOptions,
): Promise<RedactResult> {
  const refusal = checkReadableName(stream);
  if (refusal !== null) throw refusal;
  if (typeof reason !== 'string' || ![ids, metadata].every((texts) => texts.every((text) => typeof text === 'string')))
    throw new SkuaError('bad_option', 'ids, reason and metadata are texts: give a reason, at least.');
  const request = { stream, numbers: events, ids, reason, metadata };
  const found = preview
    ? { events: await findRedacted(store, request), position: null }
    : await redact(store, systemIds, BY, request);
  return {
    stream,
    events: found.events.map(({ number, id, type, dataBytes, metadataBytes, wasRedacted }) => ({
      version: number,
      id,
      type,
      dataBytes,
      metadataBytes,
      wasRedacted,
    })),
    position: found.position === null ? null : positionAt(found.position),
  };
}
