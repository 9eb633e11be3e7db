import { describe, expect, test } from 'vitest';
import { ANY } from '../../core/streams/api.ts';
import type { StoredEvent } from '../../core/streams/api.ts';
import type { OpenStore } from '../../core/store/open-store.ts';
import { decodeText, encodeText } from '../../core/text.ts';
import { readWholeStream } from '../support/oracle.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { guidFromUuidBytes, guidToText } from '../../core/guid.ts';
import { checkRow } from './notation-check.ts';
import { World } from './notation-world.ts';

/** scavenge.md section 16.11, rows 119 to 124: the history streams. */

const RUN = '0b6b8a3e-8a2c-4a57-9f0e-3f5f0a4f1d01';
const METADATA = '{"$maxAge":2592000,"$acl":{"$r":"$ops","$w":[],"$d":[],"$mr":[],"$mw":[]}}';
const NODE = '127.0.0.1:2113';
const ids = new SeededIds(119);

async function append(open: OpenStore, stream: string, type: string, isJson: boolean, text: string): Promise<number> {
  const id = guidToText(guidFromUuidBytes(ids.uuidBytes()), 0);
  return (await open.store.append(stream, ANY, [{ id, type, isJson, data: encodeText(text), metadata: new Uint8Array(0) }])).lastEventNumber;
}

/** An event of a run, and its link where it has one. */
async function tell(open: OpenStore, type: string, members: Record<string, unknown>, isLinked: boolean): Promise<void> {
  const number = await append(open, `$scavenges-${RUN}`, type, true, JSON.stringify({ scavengeId: RUN, nodeEndpoint: NODE, ...members }));
  if (isLinked) await append(open, '$scavenges', '$>', false, `${number}@$scavenges-${RUN}`);
}

async function eventsOf(open: OpenStore, stream: string): Promise<StoredEvent[]> {
  const events = await readWholeStream(open.store, stream, 'forward', 100);
  return Array.isArray(events) ? events : [];
}

/** Writes what `before` does, starts the node again, and gives `after` the store once the history has been seen to. */
async function restarted(before: (open: OpenStore) => Promise<unknown>, after: (open: OpenStore) => Promise<void>): Promise<void> {
  const world = await World.create('a0');
  const first = await world.open();
  await world.settle(before(first));
  await first.close();
  const second = await world.open({ scavenge: { repairHistory: true, nodeEndpoint: NODE } });
  // Nothing tells when it is done; by then nothing moves any more.
  for (let turns = 0; turns < 200; turns++) await new Promise((resolve) => { setImmediate(resolve); });
  await world.settle(after(second));
  await second.close();
}

describe('16.11 history', () => {
  test('row 119: history stream absent at startup', async () => {
    await restarted(async () => {}, async (open) => {
      expect((await eventsOf(open, '$$$scavenges')).map((event) => [event.type, decodeText(event.data)])).toEqual([['$metadata', METADATA]]);
    });
  });

  test('row 120: metadata with another maxAge are rewritten', async () => {
    await restarted((open) => append(open, '$$$scavenges', '$metadata', true, METADATA.replace('2592000', '60')), async (open) => {
      const events = await eventsOf(open, '$$$scavenges');
      expect(decodeText(events.at(-1)!.data)).toBe(METADATA);
      expect(events.at(-1)!.number).toBe(1);
    });
  });

  test('row 120: metadata that are right are not', async () => {
    await restarted((open) => append(open, '$$$scavenges', '$metadata', true, METADATA), async (open) => {
      expect((await eventsOf(open, '$$$scavenges')).map((event) => event.number)).toEqual([0]);
    });
  });

  test('row 121: started without completed', async () => {
    await restarted((open) => tell(open, '$scavengeStarted', {}, true), async (open) => {
      const [, completed] = await eventsOf(open, `$scavenges-${RUN}`);
      expect(completed!.type).toBe('$scavengeCompleted');
      expect(JSON.parse(decodeText(completed!.data))).toEqual({ scavengeId: RUN, nodeEndpoint: NODE, result: 'Interrupted', error: 'The node was restarted.', timeTaken: '00:00:00', spaceSaved: 0, maxChunkScavenged: 0 });
      expect((await eventsOf(open, '$scavenges')).map((event) => decodeText(event.data))).toEqual([`0@$scavenges-${RUN}`, `1@$scavenges-${RUN}`]);
    });
  });

  test('row 122: the same with two chunk events', async () => {
    const chunk = (number: number): Record<string, unknown> => ({ chunkStartNumber: number, chunkEndNumber: number, timeTaken: '00:00:01', wasScavenged: true, spaceSaved: 2_147_483_647, errorMessage: '' });
    await restarted(async (open) => {
      await tell(open, '$scavengeStarted', {}, true);
      await tell(open, '$scavengeChunksCompleted', chunk(0), false);
      await tell(open, '$scavengeChunksCompleted', chunk(1), false);
    }, async (open) => {
      const completed = (await eventsOf(open, `$scavenges-${RUN}`)).at(-1)!;
      expect(JSON.parse(decodeText(completed.data))).toMatchObject({ result: 'Interrupted', timeTaken: '00:00:02', spaceSaved: 4_294_967_294, maxChunkScavenged: 1 });
    });
  });

  test('row 123: started and completed', async () => {
    await restarted(async (open) => {
      await tell(open, '$scavengeStarted', {}, true);
      await tell(open, '$scavengeCompleted', { result: 'Success', error: null, timeTaken: '00:00:01', spaceSaved: 1, maxChunkScavenged: 0 }, true);
    }, async (open) => {
      expect(await eventsOf(open, `$scavenges-${RUN}`)).toHaveLength(2);
      expect(await eventsOf(open, '$scavenges')).toHaveLength(2);
    });
  });

  test('row 124: a successful run', async () => {
    let links: string[] = [];
    const { run } = await checkRow({
      row: 124, log: 'M0(a){mc=1}, a0, a1 | SP', left: 'M0, a1 | SP',
      run: { inspect: async (open) => { links = (await eventsOf(open, '$scavenges')).map((event) => `${event.type} ${decodeText(event.data)}`); } },
    });
    const last = run.history.length - 1;
    expect(links).toEqual([`$> 0@$scavenges-${run.scavengeId}`, `$> ${last}@$scavenges-${run.scavengeId}`]);
    expect(run.history[0]!.type).toBe('$scavengeStarted');
    expect(run.history[last]).toMatchObject({ type: '$scavengeCompleted', data: { result: 'Success', error: null, maxChunkScavenged: 0 } });
  });
});
