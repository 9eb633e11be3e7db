import { expect, test } from 'vitest';
import { ByteBudget } from '../../../core/base/byte-budget.ts';
import type { App, Call, Reply } from '../../../handlers/http/context.ts';
import { inRoom } from '../../../handlers/http/room.ts';
import { fakeConnectors, fakeIngest } from '../../support/fake-connectors.ts';
import { fakeGroups } from '../../support/fake-subscriptions.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { harness } from '../harness.ts';

const MIB = 1_048_576;

function world(totalBytes: number) {
  const clock = new ManualClock();
  const budget = new ByteBudget(
    { of: 'replies', totalBytes, reserveBytes: totalBytes / 4, smallBytes: 262_144, waitersMax: 4, waitMs: 1_000 },
    clock,
  );
  let made = 0;
  const ask = (bytes: number) => {
    const share = budget.share();
    const handler = inRoom(() => {
      made++;
      return Promise.resolve({ status: 200, statusText: 'OK', headers: {}, body: 'x'.repeat(bytes) } satisfies Reply);
    });
    const app = { server: { replyShareOf: () => share } } as unknown as App;
    return { share, reply: Promise.resolve(handler({ request: {} } as Call, app)) };
  };
  return {
    clock,
    budget,
    ask,
    get made() {
      return made;
    },
  };
}

test('a listing is not made before there is room for one, and waits its turn', async () => {
  const w = world(MIB);
  const first = await Promise.all(
    [1, 2, 3, 4].map(async () => {
      const { share, reply } = w.ask(1_000);
      await reply;
      return share;
    }),
  );
  const fifth = w.ask(1_000);
  const sixth = w.ask(1_000);
  const refused = expect(sixth.reply).rejects.toMatchObject({ code: 'too_busy' });
  await w.clock.advance(0);
  expect([w.made, w.budget.waiting]).toEqual([4, 2]);
  first[0]!.close();
  expect((await fifth.reply).status).toBe(200);
  await w.clock.advance(1_000);
  await refused;
  expect(w.made).toBe(5);
});

test('one that is longer counts with all of it, and is refused where there is no more room', async () => {
  const w = world(8 * MIB);
  const long = w.ask(2 * MIB);
  await long.reply;
  expect(w.budget.heldBytes).toBe(2 * MIB);
  await expect(w.ask(7 * MIB).reply).rejects.toMatchObject({ code: 'too_busy' });
});

test.each(['/admin/streams?prefix=s', '/subscriptions', '/connectors', '/dcb/read'])(
  '%s waits for room',
  async (path) => {
    const budget = new ByteBudget(
      { of: 'replies', totalBytes: MIB, reserveBytes: MIB / 4, smallBytes: 262_144, waitersMax: 0, waitMs: 1_000 },
      new ManualClock(),
    );
    const h = harness({
      replyShareOf: () => budget.share(),
      subscriptions: await fakeGroups('s'),
      webhooks: { connectors: await fakeConnectors(), ingest: fakeIngest() },
    });
    expect((await h.get(path, 'application/json')).status).toBe(200);
    budget.share().add(MIB);
    expect((await h.get(path, 'application/json')).status).toBe(503);
  },
);
