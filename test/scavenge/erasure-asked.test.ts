import { describe, expect, it } from 'vitest';
import { encodeText } from '../../core/base/text.ts';
import { timestampText } from '../../core/base/time.ts';
import { auditLine, ownEntry } from '../../core/ports/audit.ts';
import { checkErasure, type ErasureFinding } from '../../core/scavenge/erasure/erasure.ts';
import { ANY } from '../../core/streams/api.ts';
import { encodeMark } from '../../core/streams/format/marks.ts';
import { writeMarksTable } from '../../core/streams/format/marks-table.ts';
import { Redactions } from '../../core/streams/redactions/redactions.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { openWorld, type World } from './control-kit.ts';

/** Who asked for an erasure, and when, as the search finds it in the log. */

const idOf = (n: number) => `cccccccc-0000-4000-8000-${String(n).padStart(12, '0')}`;

function append({ open }: World, stream: string, n: number, type: string, data: string | Uint8Array) {
  const bytes = typeof data === 'string' ? encodeText(data) : data;
  return open.store.append(stream, ANY, [
    { id: idOf(n), type, isJson: true, data: bytes, metadata: new Uint8Array(0) },
  ]);
}

async function search(world: World, what: { stream?: string; events?: string[] }): Promise<ErasureFinding[]> {
  const found: ErasureFinding[] = [];
  for await (const said of checkErasure({ storage: world.storage, ...what }))
    if (said.kind !== 'progress') found.push(said);
  return found;
}

function audit(world: World, stream: string, n: number, over: Parameters<typeof ownEntry>[1] = {}, type?: string) {
  const entry = ownEntry('stream.tombstone', { user: 'ann', target: 'person-8', ...over });
  return append(world, stream, n, type ?? `$audit.${entry.action}`, auditLine(entry, world.clock.nowMs()));
}

async function lastTime({ open }: World, stream: string): Promise<string> {
  const { events } = await open.store.readStream(stream, { direction: 'backward', from: 'end', count: 1 });
  return timestampText(events[0]!.createdMs, 0);
}

describe('a deleted stream', () => {
  it('says when it was deleted, and by whom where the audit is in the log', async () => {
    const world = await openWorld();
    await append(world, 'person-8', 0, 'joined', '{}');
    world.clock.setNow(world.clock.nowMs() + 5_000);
    await world.open.store.deleteStream('person-8', ANY, 'hard');
    const hardAt = timestampText(world.clock.nowMs(), 0);
    await audit(world, '$audit', 1);
    const auditedAt = await lastTime(world, '$audit');
    // None of these says who deleted it.
    await audit(world, '$audit', 2, { outcome: 'refused', user: 'eve' });
    await audit(world, '$audit', 3, { action: 'event.redact', user: 'bo' });
    await audit(world, 'forged', 4, { user: 'eve' });
    await audit(world, '$audit', 5, { user: 'eve' }, 'other');
    const found = await search(world, { stream: 'person-8' });
    expect(found.flatMap(({ deletion }) => deletion ?? [])).toEqual([{ isHard: true, time: hardAt }]);
    expect(found.flatMap(({ audited }) => audited ?? [])).toEqual([{ isHard: true, by: 'ann', time: auditedAt }]);
    await world.open.close();
  });

  it('may be deleted softly, by metadata', async () => {
    const world = await openWorld();
    await append(world, 'person-8', 0, 'joined', '{}');
    await world.open.store.append('$$person-8', ANY, [
      { id: idOf(7), type: '$metadata', isJson: true, data: encodeText('{"$tb":1}'), metadata: new Uint8Array(0) },
    ]);
    world.clock.setNow(world.clock.nowMs() + 5_000);
    await world.open.store.deleteStream('person-8', ANY, 'soft');
    const time = timestampText(world.clock.nowMs(), 0);
    const found = await search(world, { stream: 'person-8' });
    expect(found.flatMap(({ deletion }) => deletion ?? [])).toEqual([{ isHard: false, time }]);
    await world.open.close();
  });
});

describe('the id of an event', () => {
  it('in what only looks like a mark is a trace', async () => {
    const world = await openWorld();
    const mark = { stream: 'a', number: 0, id: idOf(1), position: 0, by: 'eve', reason: 'r', keys: [] };
    await append(world, 'forged', 2, '$redaction', encodeMark(mark));
    const found = await search(world, { events: [idOf(1)] });
    expect(found).toMatchObject([{ kind: 'trace' }]);
    expect(found[0]).not.toHaveProperty('mark');
    await world.open.close();
  });

  it('in a table of redactions is residue', async () => {
    const world = await openWorld();
    const marks = new Redactions();
    marks.add({ position: 900, id: idOf(1), keys: [] }, 0);
    marks.add({ position: 1_000, id: idOf(2), keys: [] }, 0);
    await writeMarksTable(world.storage, 'redactions', marks.columns(0, 5_000, 5_000), nodeDigests);
    for (const id of [idOf(1), idOf(2)])
      expect(await search(world, { events: [id] })).toMatchObject([{ kind: 'residue', file: 'redactions' }]);
    await world.open.close();
  });
});
