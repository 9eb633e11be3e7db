import { describe, expect, test } from 'vitest';
import { ScavengeOrders } from '../../../core/auto-scavenge/orders/orders.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { harness } from '../harness.ts';

/** Orders of the cluster over `/admin/scavenge`. */

const PATH = '/admin/scavenge';
const FIRST = '00000000-0000-4000-8000-000000000001';
const CYCLE = '7D1F0C9E-5B2A-4A63-8C1D-90B1B7C3A001';

function world() {
  const plain = harness();
  const scavengeOrders = new ScavengeOrders({
    scavenger: plain.scavenger,
    store: plain.store,
    clock: plain.clock,
    log: silentLog,
    leadsOthers: () => false,
    leaseMs: 60_000,
  });
  const h = harness({ scavenger: plain.scavenger, store: plain.store, scavengeOrders } as never);
  const order = (attempt: number, cycle = CYCLE) => `clusterScavengeId=${cycle}&attempt=${attempt}`;
  const start = (attempt: number, cycle = CYCLE, more = '') =>
    h.send('POST', `${PATH}?${order(attempt, cycle)}${more}`);
  const stop = (attempt: number, id = 'current') => h.send('DELETE', `${PATH}/${id}?${order(attempt)}`);
  const last = (attempt: number) => h.get(`${PATH}/last?${order(attempt)}`);
  return { ...h, scavenger: plain.scavenger, clock: plain.clock, orders: scavengeOrders, start, stop, last };
}

test('a repeat of a start has the answer of the first one, with other letters and while it runs or not', async () => {
  const { start, scavenger } = world();
  expect((await start(3, CYCLE, '&threads=2')).json()).toEqual({ scavengeId: FIRST });
  expect((await start(3, CYCLE.toLowerCase())).json()).toEqual({ scavengeId: FIRST });
  scavenger.end('Success');
  expect((await start(3)).json()).toEqual({ scavengeId: FIRST });
  expect(scavenger.started).toEqual([{ options: { threads: 2 }, isDry: false }]);
});

describe('stopping and asking', () => {
  test('a stop ends the run of the cycle and makes what was ordered before late', async () => {
    const { start, stop, last } = world();
    await start(3);
    expect(await stop(4)).toMatchObject({ status: 200, text: `"${FIRST}"` });
    expect((await start(3)).status).toBe(409);
    expect((await stop(3)).status).toBe(409);
    expect((await stop(4)).json()).toMatchObject({ code: 'scavenge_not_found' });
    expect((await last(4)).json()).toMatchObject({ scavengeId: FIRST, scavengeResult: 'Stopped' });
  });

  test('whoever asks for the run of an order keeps it going', async () => {
    const { start, last, orders, clock, scavenger, get } = world();
    await start(3);
    await clock.advance(50_000);
    await last(3);
    await clock.advance(50_000);
    await orders.endAbandoned();
    expect(scavenger.current()).toBe(FIRST);
    await get(`${PATH}/last`);
    await clock.advance(50_000);
    await orders.endAbandoned();
    expect(scavenger.current()).toBeNull();
    expect((await get(`${PATH}/last`)).json()).toMatchObject({ scavengeId: FIRST, scavengeResult: 'Interrupted' });
  });
});

describe('what is refused', () => {
  const both = 'clusterScavengeId and attempt belong together: give both or none';
  test.each([
    [`clusterScavengeId=${CYCLE}`, both],
    ['attempt=1', both],
    [`clusterScavengeId=x&attempt=1`, 'clusterScavengeId must be a UUID'],
    [`clusterScavengeId=&attempt=1`, 'clusterScavengeId must be a UUID'],
    [`clusterScavengeId=${CYCLE}&attempt=-1`, 'attempt must be an integer of 0 or above'],
    [`clusterScavengeId=${CYCLE}&attempt=x`, 'attempt must be an integer of 0 or above'],
    [`clusterScavengeId=${CYCLE}&attempt=99999999999999999999`, 'attempt must be an integer of 0 or above'],
  ])('?%s', async (query, detail) => {
    const { send, get, scavenger } = world();
    for (const reply of [
      await send('POST', `${PATH}?${query}`),
      await send('DELETE', `${PATH}/current?${query}`),
      await get(`${PATH}/last?${query}`),
    ])
      expect([reply.status, reply.json().detail]).toEqual([400, detail]);
    expect(scavenger.started).toEqual([]);
  });

  test('a dry run, and any order where no cluster gives some', async () => {
    const { start } = world();
    expect((await start(1, CYCLE, '&dryRun=true')).json()).toMatchObject({
      code: 'bad_request',
      detail: expect.stringMatching(/no dry runs/),
    });
    for (const [method, path] of [
      ['POST', PATH],
      ['DELETE', `${PATH}/current`],
      ['GET', `${PATH}/last`],
    ] as const)
      expect((await harness().send(method, `${path}?clusterScavengeId=${CYCLE}&attempt=1`)).json()).toMatchObject({
        detail: expect.stringMatching(/accepts no orders/),
      });
  });
});
