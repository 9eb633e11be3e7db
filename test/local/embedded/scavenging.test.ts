import { expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import type { Scavenger } from '../../../core/scavenge/api.ts';
import { COMPLETED_TYPE, TRACES_TYPE } from '../../../core/scavenge/history/history.ts';
import type { EventStore } from '../../../core/streams/api.ts';
import { encodeText } from '../../../core/base/text.ts';
import { scavengeNow } from '../../../local/embedded/scavenging.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const NO_EVENT = { stream: '$scavenges-run', number: 0, id: '', isJson: true, metadata: new Uint8Array(0) };

/** A run that a tick has ended, whose end stands in its history from the given look on. */
function ended({
  toldAtLook,
  closing = new AbortController().signal,
}: {
  readonly toldAtLook: number;
  readonly closing?: AbortSignal;
}) {
  const clock = new ManualClock();
  let looks = 0;
  const scavenger = {
    start: async () => ({ scavengeId: 'run' }),
    last: () => ({ scavengeId: 'run', result: 'Success', error: null }),
  } as Partial<Scavenger> as Scavenger;
  const store = {
    readStream: async (stream: string, { count }: { readonly count: number }) => {
      if (++looks < toldAtLook) throw new SkuaError('stream_not_found', 'none', { stream });
      const traces = { ...NO_EVENT, type: TRACES_TYPE, data: encodeText('{}') };
      return {
        events: [
          traces,
          {
            ...NO_EVENT,
            type: COMPLETED_TYPE,
            data: encodeText(JSON.stringify({ spaceSaved: 71, timeTaken: '00:00:01', result: 'Success', error: null })),
          },
        ].slice(0, count),
        isEnd: true,
      } as never;
    },
  } as Partial<EventStore> as EventStore;
  return {
    clock,
    looks: () => looks,
    result: scavengeNow({ scavenger, store, clock, closing, refresh: async () => {} }, {}),
  };
}

test('what a run freed is told though its end came into its history a little later than it ended', async () => {
  const { clock, result } = ended({ toldAtLook: 3 });
  await clock.advance(1_000);
  expect(await result).toMatchObject({ id: 'run', bytesFreed: 71 });
});

test('a history that does not come is waited for five seconds, and no longer than the store is open', async () => {
  const never = ended({ toldAtLook: Infinity });
  await never.clock.advance(5_000);
  expect(await never.result).toMatchObject({ bytesFreed: null });
  expect(never.looks()).toBe(50);
  const closed = ended({ toldAtLook: Infinity, closing: AbortSignal.abort() });
  expect(await closed.result).toMatchObject({ bytesFreed: null });
  expect(closed.looks()).toBe(1);
});
