import { expect, test, vi } from 'vitest';
import { SkuaError } from '../../core/base/errors.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { CommitLog } from '../../core/ports/commit-log.ts';
import { ANY } from '../../core/streams/api.ts';
import { ReadRecords } from '../../core/streams/committed/committed.ts';
import { createEventStore } from '../../core/streams/streams.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { MemoryLog, NaiveIndex } from './doubles.ts';
import { codeOf, event } from './setup.ts';

/** What is checked where a group is handed to the log, and where what the log has is made known: each broken once. */

/** A store over a log whose writer is changed. */
function over(change: (writer: CommitLog) => Partial<CommitLog> = () => ({})) {
  const log = new MemoryLog();
  const index = new NaiveIndex();
  const { writer } = log;
  const changed = change(writer);
  const commitLog: CommitLog = {
    get end() {
      return changed.end ?? writer.end;
    },
    get remaining() {
      return writer.remaining;
    },
    capacity: writer.capacity,
    append: (group) => (changed.append ?? writer.append)(group),
    publish: () => {
      writer.publish();
    },
    completeChunk: () => writer.completeChunk(),
  };
  const store = createEventStore({
    reader: log,
    commitLog,
    index,
    clock: new ManualClock(),
    ids: new SeededIds(5),
    log: silentLog,
    meter: silentMeter,
  });
  return { store, log, index };
}

test('while the index takes nothing all that waits is refused, and later writes are taken again', async () => {
  const { store, log, index } = over();
  for (const code of ['too_busy', 'disk_full', 'index_corrupt'] as const) {
    const { end } = log;
    const ready = vi.spyOn(index, 'ready').mockImplementation(() => Promise.reject(new SkuaError(code, 'Not now.')));
    const refused = await Promise.all(Array.from({ length: 5 }, () => codeOf(store.append('s', ANY, [event()]))));
    expect(refused).toEqual([code, code, code, code, code]);
    expect(ready).toHaveBeenCalledTimes(1);
    // Nor is one taken that comes while the one before is told so.
    const again = () => store.append('s', ANY, [event()]);
    await expect(again().catch(again).catch(again)).rejects.toMatchObject({ code });
    expect(log.end).toBe(end);
    ready.mockRestore();
    expect(await codeOf(store.append('s', ANY, [event()]))).toBe('ok');
  }
});

const STOPPED = { code: 'writer_stopped', message: /defect/ };

test('a group that does not begin where the log ends is not handed to it, and nothing is written any more', async () => {
  let shift = 0;
  const { store, log } = over((writer) => ({
    get end() {
      return writer.end + shift;
    },
  }));
  await store.append('s', ANY, [event()]);
  const { end } = log;
  // Asked while the group is put together: the log moves behind its back.
  await expect(
    store.append('s', ANY, [event()], () => {
      shift = 8;
      return null;
    }),
  ).rejects.toMatchObject(STOPPED);
  shift = 0;
  expect(log.groups.length).toBe(1);
  await expect(store.append('s', ANY, [event()])).rejects.toMatchObject(STOPPED);
  expect(store.end).toBe(end);
  expect((await store.streamInfo('s')).lastEventNumber).toBe(0);
  await store.close();
});

test('a group that the log does not have is not made known, and nothing is written any more', async () => {
  let isLost = false;
  const { store, log } = over((writer) => ({
    append: async (group) => {
      if (!isLost) await writer.append(group);
    },
  }));
  await store.append('s', ANY, [event()]);
  const { end } = log;
  isLost = true;
  await expect(store.append('s', ANY, [event()])).rejects.toMatchObject(STOPPED);
  isLost = false;
  await expect(store.append('s', ANY, [event()])).rejects.toMatchObject(STOPPED);
  expect(store.end).toBe(end);
  expect((await store.streamInfo('s')).lastEventNumber).toBe(0);
  await store.close();
});

test('a commit of another writer that readers see already is not taken in once more, and nothing is written any more', async () => {
  const { store, log, index } = over();
  await store.append('s', ANY, [event()]);
  const first = new ReadRecords(index.hasher).read(log.bytes.slice(0, log.end), 0);
  expect(() => {
    store.follow(first);
  }).toThrow(expect.objectContaining({ code: 'writer_stopped' }));
  expect((await store.streamInfo('s')).lastEventNumber).toBe(0);
  await expect(store.append('s', ANY, [event()])).rejects.toMatchObject(STOPPED);
  expect((await store.readStream('s', { direction: 'forward', from: 0, count: 10 })).events.length).toBe(1);
  await store.close();
});
