import { describe, expect, test } from 'vitest';
import { openObjectStore } from '../../core/shared-log/shared-log.ts';
import { verifyObjects, type VerifyObjectsNote } from '../../core/shared-log/verify/verify.ts';
import { commitKey } from '../../core/shared-log/format/object-keys.ts';
import { encodeManifest } from '../../core/shared-log/format/manifest.ts';
import { MemoryObjects } from '../support/memory-objects.ts';
import { MemoryStorage } from '../../core/memory/memory-storage.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { ANY } from '../../core/streams/api.ts';
import type { VerifyFinding } from '../../core/integrity/verify/verify-run.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { SeededIds } from '../support/seeded-ids.ts';
import { AutoClock } from './auto-clock.ts';
import { expectScavenged, OPTIONS, scavengeable } from './scavenge-kit.ts';
import { eventsOf, manifestOf, runTick, worldOf } from './tick-kit.ts';

async function verify(objects: ObjectStore, clock: AutoClock) {
  const findings: (VerifyFinding | VerifyObjectsNote)[] = [];
  const run = verifyObjects({ world: worldOf(objects, clock, 900), scratch: new MemoryStorage() });
  for (let next = await run.next(); ; next = await run.next()) {
    if (next.done === true)
      return {
        findings,
        codes: findings.map(({ code }) => code),
        files: findings.map(({ file }) => file),
        summary: next.value,
      };
    if (next.value.kind !== 'progress') findings.push(next.value);
  }
}

/** A scavenged store with a tail. */
async function stored() {
  const clock = new AutoClock();
  const { base: objects, scavengeId, universe } = await scavengeable(clock);
  await expectScavenged(objects, clock, scavengeId, universe, 100);
  const writer = await openObjectStore(worldOf(objects, clock, 7), OPTIONS);
  const ids = new SeededIds(8);
  for (let i = 0; i < 3; i++) await writer.store.append('long', ANY, eventsOf(ids, 1, 500));
  await runTick(worldOf(objects, clock, 9));
  for (let i = 0; i < 3; i++) await writer.store.append('long', ANY, eventsOf(ids, 1, 500));
  await writer.close();
  return { clock, objects };
}

async function changed(objects: MemoryObjects, key: string, at = -40): Promise<void> {
  const bytes = (await objects.get(key))!;
  const i = at < 0 ? bytes.length + at : at;
  bytes[i] = bytes[i]! ^ 1;
  await objects.remove([key]);
  await objects.put(key, bytes);
}

describe('a store in a bucket', () => {
  test('that is whole has nothing wrong, and nothing without a checksum', async () => {
    const { clock, objects } = await stored();
    const before = objects.size;
    const { findings, summary } = await verify(objects, clock);
    expect(findings).toEqual([]);
    expect(summary).toMatchObject({ errors: 0, warnings: 0, notes: 0, commits: 3 });
    expect(summary.events).toBeGreaterThan(10);
    expect(summary.waiting).toBeGreaterThan(0);
    expect(objects.size).toBe(before);
  });

  test('names what is damaged, whatever it is', async () => {
    const { clock, objects: base } = await stored();
    const { chunks, ongoing, files, boundary, number } = await manifestOf(base);
    const damaged = async (damage: (objects: MemoryObjects) => Promise<unknown>) => {
      const objects = base.fork();
      await damage(objects);
      return verify(objects, clock);
    };
    const chunk = await damaged((objects) => changed(objects, chunks[0]!.key, 200));
    expect(chunk.codes).toContain('md5_mismatch');
    expect(chunk.files).toContain(chunks[0]!.name);
    const segment = ongoing!.segments[0]!.key;
    expect(await damaged((objects) => changed(objects, segment))).toMatchObject({
      codes: expect.arrayContaining(['crc_mismatch']) as string[],
    });
    const state = files.find(({ name }) => name.endsWith('scavenging.db'))!.key!;
    expect(await damaged((objects) => changed(objects, state))).toMatchObject({
      codes: ['crc_mismatch'],
      files: [state],
    });
    const table = files.find(({ name, key }) => key !== null && /^index\/[0-9a-f-]{36}$/.test(name))!;
    expect((await damaged((objects) => changed(objects, table.key!, 60))).files).toContain(table.name);
    expect(await damaged((objects) => objects.remove([chunks[0]!.key]))).toMatchObject({
      codes: ['object_missing'],
      files: [chunks[0]!.key],
    });
    expect((await damaged((objects) => changed(objects, commitKey(boundary + 1)))).codes).toContain('log_corrupt');
    expect((await damaged((objects) => objects.remove([commitKey(boundary + 1)]))).codes).toContain('log_corrupt');
    const manifest = `manifest/${String(999_999_999_999_999 - number).padStart(15, '0')}`;
    expect(await damaged((objects) => changed(objects, manifest))).toMatchObject({
      codes: ['manifest_invalid'],
      files: [manifest],
    });
  });

  test('of an older version has parts that nothing vouches for, and they are named', async () => {
    const { clock, objects } = await stored();
    const manifest = await manifestOf(objects);
    const segments = manifest.ongoing!.segments.map(({ key, from, to }) => ({ key, from, to }));
    const number = manifest.number + 1;
    await objects.put(
      `manifest/${String(999_999_999_999_999 - number).padStart(15, '0')}`,
      encodeManifest({ ...manifest, number, ongoing: { ...manifest.ongoing!, segments } }, nodeDigests),
    );
    const { findings, summary } = await verify(objects, clock);
    expect(summary).toMatchObject({ errors: 0, notes: segments.length });
    expect(findings).toMatchObject(segments.map(({ key }) => ({ kind: 'note', code: 'unprotected', file: key })));
  });

  test('that is rewritten meanwhile is to be checked again', async () => {
    const { clock, objects } = await stored();
    const { chunks } = await manifestOf(objects);
    let isGone = false;
    const racing: ObjectStore = new Proxy(objects, {
      get: (target, name) =>
        name !== 'get'
          ? ((Reflect.get(target, name, target) as (...args: unknown[]) => unknown).bind?.(target) ?? target.place)
          : async (key: string, options?: object) => {
              if (key === chunks[0]!.key && !isGone) {
                isGone = true;
                const manifest = await manifestOf(objects);
                const number = manifest.number + 1;
                await objects.put(
                  `manifest/${String(999_999_999_999_999 - number).padStart(15, '0')}`,
                  encodeManifest({ ...manifest, number }, nodeDigests),
                );
                await objects.remove([chunks[0]!.key]);
              }
              return target.get(key, options);
            },
    });
    await expect(verify(racing, clock)).rejects.toMatchObject({ code: 'too_busy' });
  });

  test('is not checked where there is none', async () => {
    await expect(verify(new MemoryObjects(), new AutoClock())).rejects.toMatchObject({ code: 'file_not_found' });
  });
});
