import { BlockCache } from '../../../core/cache/block-cache.ts';
import { HIT, untilHit } from '../../../core/cache/step.ts';
import { openLog } from '../../../core/log/open-log.ts';
import { RecordFrame } from '../../../core/log/records.ts';
import { silentLog } from '../../../core/ports/log.ts';
import type { Storage } from '../../../core/ports/storage.ts';
import { nodeDigests } from '../../../infra/digests.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';

/** All records of a directory, by position. */
export async function recordsOf(storage: Storage): Promise<[number, string][]> {
  const log = await openLog({ storage, cache: new BlockCache(1_048_576), digests: nodeDigests, ids: new SeededIds(7), clock: new ManualClock(), log: silentLog, isCopy: true });
  const out: [number, string][] = [];
  const frame = new RecordFrame();
  for (let at = 0; at < log.table.end;) {
    const from = at;
    if (await untilHit(() => log.table.readForward(from, frame)) !== HIT) break;
    out.push([frame.position, Buffer.from(frame.bytes.subarray(frame.at, frame.at + frame.length)).toString('hex')]);
    at = frame.next;
  }
  await log.close();
  return out;
}
