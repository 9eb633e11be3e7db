import { isSkuaError } from '../../core/errors.ts';
import type { Ids } from '../../core/ports/ids.ts';
import { guidFromUuidBytes, guidToText } from '../../core/guid.ts';
import { ANY } from '../../core/streams/api.ts';
import type { EventStore, NewEvent } from '../../core/streams/api.ts';
import { encodeText } from '../../core/text.ts';
import type { SeedEvent } from './api.ts';
import { badOption } from './options.ts';

const NONE = new Uint8Array(0);

/** Writes the events, stream by stream. Rejects with `bad_option`, naming stream and event, for what is no event. */
export async function writeSeed(store: Pick<EventStore, 'append'>, ids: Ids, streams: Readonly<Record<string, readonly SeedEvent[]>>): Promise<void> {
  const all = Object.entries(streams).map(([stream, events]) => {
    if (!Array.isArray(events)) throw badOption(`The seed of ${stream} is a list of events.`, { stream });
    return { stream, events: (events as readonly SeedEvent[]).map((event, i) => newEvent(event, `Event ${i} of ${stream}`, ids)) };
  });
  for (const { stream, events } of all) {
    if (events.length === 0) continue;
    await store.append(stream, ANY, events).catch((error: unknown) => {
      throw isSkuaError(error) ? badOption(`The seed of ${stream} was refused: ${error.message}`, { stream, refusedWith: error.code }) : error;
    });
  }
}

function newEvent({ type, data = {}, metadata, id }: SeedEvent, where: string, ids: Ids): NewEvent {
  if (typeof type !== 'string' || type === '') throw badOption(`${where} has no type.`);
  return {
    id: id ?? guidToText(guidFromUuidBytes(ids.uuidBytes()), 0), type, isJson: !(data instanceof Uint8Array),
    data: bytesOf(data, where), metadata: metadata === undefined ? NONE : bytesOf(metadata, where),
  };
}

function bytesOf(value: unknown, where: string): Uint8Array {
  if (value instanceof Uint8Array) return value;
  const text = jsonOf(value);
  if (text === undefined) throw badOption(`${where} holds what has no JSON.`);
  return encodeText(text);
}

function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
