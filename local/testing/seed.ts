import { isSkuaError } from '../../core/base/errors.ts';
import type { NewEvent, Store } from '../embedded/api.ts';
import { badOption } from './test-options.ts';

/** Writes the events, stream by stream. Rejects with `bad_option`, naming the stream, for what the store refuses. */
export async function writeSeed(
  store: Pick<Store, 'append'>,
  streams: Readonly<Record<string, readonly NewEvent[]>>,
): Promise<void> {
  for (const [stream, events] of Object.entries(streams)) {
    if (!Array.isArray(events)) throw badOption(`The seed of ${stream} is a list of events.`, { stream });
    if (events.length === 0) continue;
    await store.append(stream, events as readonly NewEvent[]).catch((error: unknown) => {
      throw isSkuaError(error)
        ? badOption(`The seed of ${stream} was refused: ${error.message}`, { stream, refusedWith: error.code })
        : error;
    });
  }
}
