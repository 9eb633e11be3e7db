import { describe, expect, test } from 'vitest';
import type { AllPosition } from '../../../core/streams/api.ts';
import { ANY } from '../../../core/streams/api.ts';
import { FRESH_DEFAULT_MS } from '../../../core/shared-log/api.ts';
import { listAll } from '../../../core/ports/object-store.ts';
import { Cluster, event } from './kit.ts';

// Found by the simulation of members.

describe('a subscriber who comes from another member', () => {
  test.each(['messages', 'pages'])(
    'with a place that this copy has not reached is sent nothing twice, and misses nothing: %s',
    async (form) => {
      const cluster = new Cluster();
      const [one, two] = [await cluster.open(), await cluster.open()];
      for (const type of ['first', 'second', 'third']) await one.store.append('s', ANY, [event(type)]);
      const { events } = await one.store.readAll({ direction: 'forward', from: 'start', count: 10 });
      const after: AllPosition = { commit: events[1]!.position, prepare: events[1]!.preparePosition };
      expect(two.log.end).toBeLessThan(after.commit);
      const seen: string[] = [];
      if (form === 'messages') {
        for await (const message of two.store.subscribeToAll({ after })) {
          if (message.kind === 'event') seen.push(message.event.type);
          else if (message.kind === 'caught-up') break;
        }
      } else {
        for await (const page of two.store.followAll({ after })) {
          seen.push(...page.events.map(({ type }) => type));
          if (page.isCaughtUp) break;
        }
      }
      expect(seen).toEqual(['third']);
      await Promise.all([one.close(), two.close()]);
    },
  );
});

describe('a bucket that is put back', () => {
  test('to before what a member knows, under the same manifest: it writes nothing, and says why', async () => {
    const cluster = new Cluster();
    const one = await cluster.open();
    await one.store.append('s', ANY, [event('kept')]);
    const kept = new Set<string>();
    for await (const { key } of listAll(cluster.objects, 'log/')) kept.add(key);
    await one.store.append('s', ANY, [event('gone')]);
    for await (const { key } of listAll(cluster.objects, 'log/'))
      if (!kept.has(key)) await cluster.objects.remove([key]);
    // What it knows is so old that it has to look.
    await cluster.clock.advance(FRESH_DEFAULT_MS + 1);
    await expect(one.store.append('s', ANY, [event('wrong')])).rejects.toMatchObject({ code: 'log_diverged' });
    expect((await one.failed).code).toBe('log_diverged');
    const left: string[] = [];
    for await (const { key } of listAll(cluster.objects, 'log/')) left.push(key);
    expect(left).toEqual([...kept]);
    await one.close();
  });
});
