import { DeciderCommandHandler, isExpectedVersionConflictError } from 'emmett-current';
import type { EventStore } from 'emmett-current';
import { decider, evolve, initialState } from './domain.ts';
import type { Copy, CopyCommand, CopyEvent } from './domain.ts';

const RETRIES_MAX = 50;

/** What the desk of a library does, over whatever event store of Emmett. */
export function openLibrary(store: EventStore) {
  const handle = DeciderCommandHandler<Copy, CopyCommand, CopyEvent>({
    ...decider,
    mapToStreamId: streamOf,
    // Of two at one copy the second decides again, on what the first has done.
    retry: {
      onVersionConflict: {
        retries: RETRIES_MAX,
        minTimeout: 1,
        maxTimeout: 20,
        shouldRetryError: isExpectedVersionConflictError,
      },
    },
  });
  const tell = async (copy: string, command: CopyCommand): Promise<Copy> =>
    (await handle(store, copy, command)).newState;
  return {
    acquire: (copy: string, title: string) => tell(copy, { type: 'AcquireCopy', data: { title } }),
    lend: (copy: string, reader: string, due: string) => tell(copy, { type: 'LendCopy', data: { reader, due } }),
    reserve: (copy: string, reader: string) => tell(copy, { type: 'ReserveCopy', data: { reader } }),
    takeBack: (copy: string, on: string) => tell(copy, { type: 'ReturnCopy', data: { on } }),

    /** A copy as it is now. */
    async look(copy: string): Promise<Copy> {
      return (await store.aggregateStream<Copy, CopyEvent>(streamOf(copy), { evolve, initialState })).state;
    },

    /** What happened to a copy, in words. */
    async history(copy: string): Promise<string[]> {
      const { events } = await store.readStream<CopyEvent>(streamOf(copy));
      return events.map(({ type, data }) =>
        type === 'CopyAcquired' ? `${type} ${data.title}` : `${type} ${data.reader}`,
      );
    },
  };
}

function streamOf(copy: string): string {
  return `copy-${copy}`;
}
