import { expect, it } from 'vitest';
import { untilHit } from '../../core/base/step.ts';
import { ShadowedStreams } from '../../core/integrity/verify/shadowed-streams.ts';
import { VerifyRun } from '../../core/integrity/verify/verify-run.ts';
import { parsePrepare, PrepareFields, RecordFrame } from '../../core/log/format/records.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { ByHand, DATA } from '../streams/by-hand.ts';
import { MemoryLog, Misses } from '../streams/doubles.ts';
import { ManualClock } from '../support/manual-clock.ts';

it('streams that have the name of a view are named once, a hundred of them at most', async () => {
  const log = new MemoryLog(undefined, new Misses(1, 0));
  const hand = new ByHand(log);
  const run = new VerifyRun({ storage: new MemoryStorage(), digests: nodeDigests, clock: new ManualClock() });
  const shadowed = new ShadowedStreams(run);
  const frame = new RecordFrame();
  const fields = new PrepareFields();
  const others = ['a-1', '$ce', '$ce_a', '$cd-a', '$$$ce-a', '$et', '$x'];
  const many = Array.from({ length: 120 }, (_, i) => `$bc-${i}`);
  for (const stream of [...others, '$ce-a', '$ce-a', '$et-t', ...many]) {
    const position = hand.prepare(stream, DATA, -1, 0, -2);
    // oxlint-disable-next-line no-await-in-loop
    await untilHit(() => log.readAt(position, frame));
    parsePrepare(frame, fields);
    shadowed.look(frame, fields, 'chunk-000000.000000');
  }
  const found = run.take();
  expect(found).toHaveLength(100);
  expect(found.slice(0, 3)).toMatchObject(
    ['$ce-a', '$et-t', '$bc-0'].map((name) => ({
      severity: 'warning',
      code: 'stream_shadowed',
      message: expect.stringContaining(`a stream ${name},`),
    })),
  );
});
