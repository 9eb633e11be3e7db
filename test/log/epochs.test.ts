import { describe, expect, it } from 'vitest';
import { HIT } from '../../core/base/step.ts';
import { decodeEpoch, RecordFrame, SYSTEM } from '../../core/log/format/records.ts';
import { decodeText } from '../../core/base/text.ts';
import { FaultyStorage } from '../support/faulty-storage.ts';
import { openTestStore } from '../support/test-store.ts';
import { CHUNK, openTestLog, step } from './kit.ts';
import { bySize } from '../support/run-size.ts';

/** The epochs of a log are a chain. */

const MODES = ['drop', 'keep', 'partial', 'clean'] as const;

interface Epoch {
  readonly at: number;
  readonly number: number;
  readonly previous: number;
}

async function epochsOf(storage: FaultyStorage): Promise<Epoch[]> {
  const log = await openTestLog(storage);
  const epochs: Epoch[] = [];
  const frame = new RecordFrame();
  for (let at = 0; (await step(() => log.table.readForward(at, frame))) === HIT; at = frame.next) {
    if (frame.type !== SYSTEM) continue;
    const { epochNumber = 0, prevEpochPosition = 0 } = JSON.parse(decodeText(decodeEpoch(frame).json)) as {
      epochNumber?: number;
      prevEpochPosition?: number;
    };
    epochs.push({ at: frame.position, number: epochNumber, previous: prevEpochPosition });
  }
  await log.close();
  return epochs;
}

const open = (storage: FaultyStorage, seed: number) =>
  openTestStore({ storage, seed, chunkSizeBytes: CHUNK, verifyChunks: false });

describe('a start that a crash cuts off', () => {
  it('leaves an epoch that the next one follows, whatever operation it was', async () => {
    const before = new FaultyStorage({ reads: 'async' });
    await (await open(before, 1)).close();
    const calm = before.restart('keep');
    await open(calm, 2);
    const operations = calm.operations;
    let unnoted = 0;
    for (let n = 1; n <= operations; n++) {
      for (const mode of bySize<readonly (typeof MODES)[number][]>([MODES[n % 4]!], MODES)) {
        const crashed = before.restart('keep');
        crashed.crashAt(n);
        await open(crashed, 2).catch(() => {});
        const again = crashed.restart(mode, n);
        await (await open(again, 3)).close();
        const epochs = await epochsOf(again);
        if (epochs.length === 3) unnoted++;
        expect(
          epochs.map(({ previous }) => previous),
          `crash at operation ${n}, ${mode}`,
        ).toEqual([-1, ...epochs.slice(0, -1).map(({ at }) => at)]);
        expect(
          epochs.every(({ number }, i) => i === 0 || number > epochs[i - 1]!.number),
          `crash at operation ${n}, ${mode}`,
        ).toBe(true);
      }
    }
    expect(unnoted, 'epochs of starts that were cut off').toBeGreaterThan(bySize(0, 4));
  });
});
