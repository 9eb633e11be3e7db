import { describe, expect, it } from 'vitest';
import { putI32, putI64 } from '../../core/base/bytes.ts';
import type { SkuaError } from '../../core/base/errors.ts';
import { HIT } from '../../core/base/step.ts';
import { RecordFrame } from '../../core/log/format/records.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { appendGroup, groupAt, logText, openTestLog, step, textOf } from './kit.ts';

/** The place that each record names is checked on both sides: where a group is written, and where a record is read. */

const FIRST = 'chunk-000000.000000';
const HEADER_BYTES = 128;

/** Groups that were not made for the end of a log at `end`. */
const WRONG: Readonly<Record<string, (end: number) => Uint8Array>> = {
  'made for another place': (end) => groupAt(end + 8, [300, 400]),
  'whose first record names another place': (end) =>
    changed(groupAt(end, [300, 400]), (group) => {
      putI64(group, 6, end + 1);
    }),
  'whose last record names another place': (end) =>
    changed(groupAt(end, [300, 400]), (group) => {
      putI64(group, 306, end);
    }),
  'whose last record is cut': (end) => groupAt(end, [300, 400]).slice(0, 690),
  'whose last record has two lengths': (end) =>
    changed(groupAt(end, [300, 400]), (group) => {
      putI32(group, 300, 391);
    }),
  'whose last record would begin before it': (end) =>
    changed(groupAt(end, [300]), (group) => {
      putI32(group, 296, 5_000);
    }),
  'of a few bytes': () => new Uint8Array(12),
  'of zeros': () => new Uint8Array(300),
};

function changed(group: Uint8Array, change: (group: Uint8Array) => void): Uint8Array {
  change(group);
  return group;
}

describe('a group', () => {
  for (const [what, groupFor] of Object.entries(WRONG)) {
    it(`${what} is refused before a byte of it is written, and the writer stops`, async () => {
      const storage = new FaultyStorage();
      const log = await openTestLog(storage);
      const before = await appendGroup(log, [500]);
      const operations = storage.ops.filter(({ path }) => path === FIRST).length;
      let told: SkuaError | null = null;
      log.onStop((error) => {
        told = error;
      });
      await expect(log.append(groupFor(log.end))).rejects.toMatchObject({ code: 'writer_stopped', message: /defect/ });
      expect(told).toMatchObject({ code: 'writer_stopped' });
      expect(storage.ops.filter(({ path }) => path === FIRST).length).toBe(operations);
      await expect(log.append(groupAt(log.end, [300]))).rejects.toMatchObject({ code: 'writer_stopped' });
      expect(await logText(log.table)).toBe(textOf(before));
      await log.close();
      const again = await openTestLog(storage.restart('drop'));
      const more = await appendGroup(again, [300, 400]);
      expect(await logText(again.table)).toBe(textOf(before, more));
    });
  }
});

describe('a record', () => {
  it('that names another place is not read', async () => {
    const storage = new FaultyStorage();
    const log = await openTestLog(storage);
    await appendGroup(log, [500, 300]);
    await log.completeChunk();
    const file = await storage.open(FIRST, 'write');
    await file.writeAt(HEADER_BYTES + 506, Uint8Array.of(99));
    await file.close();
    await expect(step(() => log.table.readAt(0, new RecordFrame()))).resolves.toBe(HIT);
    await expect(step(() => log.table.readAt(500, new RecordFrame()))).rejects.toMatchObject({ code: 'log_corrupt' });
  });
});
