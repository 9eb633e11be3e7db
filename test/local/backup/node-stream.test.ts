import { expect, test } from 'vitest';
import type { StoreHold } from '../../../core/store/hold/hold.ts';
import { Holds } from '../../../core/store/hold/hold.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import { createApp } from '../../../handlers/app.ts';
import { systemClock } from '../../../infra/system-clock.ts';
import { systemIds } from '../../../infra/system-ids.ts';
import { startServer } from '../../../local/http/server.ts';
import { fakeBackups, SNAPSHOT } from '../../support/backup/fake-backups.ts';
import { FakeScavenger } from '../../support/fake-scavenger.ts';
import { ModelStore } from '../../support/model-store.ts';
import { contextOf } from '../../support/app-context.ts';

const PIECE_BYTES = 1_048_576;
const PIECES = 64;
/** What may be on its way: the buffers of two sockets, and a few pieces. */
const AHEAD_BYTES_MAX = 24 * PIECE_BYTES;

test('a large file is read only as fast as its reader takes it, and let go when the reader goes away', async () => {
  let produced = 0;
  let closed = Promise.withResolvers<void>();
  const buffer = new Uint8Array(PIECE_BYTES);
  const hold: StoreHold = {
    snapshot: { ...SNAPSHOT, files: [{ path: 'chunk-000000.000000', kind: 'chunk', sizeBytes: PIECES * PIECE_BYTES }] },
    isReleased: false,
    async *read(_path, position, length) {
      try {
        for (let done = 0; done < length; done += PIECE_BYTES) {
          // The same memory every time, as a real source uses it.
          buffer.fill((position + done) / PIECE_BYTES);
          produced += PIECE_BYTES;
          yield buffer;
        }
      } finally {
        closed.resolve();
      }
    },
    release: async () => {},
  };
  const holds = new Holds({ take: async () => hold, clock: systemClock, ids: systemIds, log: silentLog });
  const app = createApp(
    contextOf({
      store: new ModelStore(systemClock, systemIds),
      scavenger: new FakeScavenger(),
      clock: systemClock,
      ids: systemIds,
      log: silentLog,
      meter: silentMeter,
      security: null,
      node: null,
      backups: { ...(await fakeBackups(systemClock)), holds },
    }),
  );
  const server = await startServer({ hostname: '127.0.0.1', port: 0, fetch: app, log: silentLog });
  try {
    const { holdId } = await holds.begin();
    const url = `${server.url}/admin/backup/files/chunk-000000.000000?hold=${holdId}`;
    let received = 0;
    for await (const piece of (await fetch(url)).body!) {
      for (const at of [0, piece.length - 1]) expect(piece[at]).toBe(Math.floor((received + at) / PIECE_BYTES));
      received += piece.length;
      expect(produced - received).toBeLessThan(AHEAD_BYTES_MAX);
    }
    expect(received).toBe(PIECES * PIECE_BYTES);
    await closed.promise;

    closed = Promise.withResolvers();
    const gone = new AbortController();
    const reader = (await fetch(url, { signal: gone.signal })).body!.getReader();
    await reader.read();
    gone.abort();
    await reader.closed.catch(() => {});
    await closed.promise;
    expect(produced).toBeLessThan(2 * PIECES * PIECE_BYTES);
  } finally {
    await holds.close();
    await server.stop(1_000);
  }
});
