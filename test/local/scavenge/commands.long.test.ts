import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, watch } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { skua, startedNode } from '../spawn.ts';
import { runBy } from '../run.ts';
import { FakeIo } from '../support.ts';

/**
 * Scavenging from the command line against real nodes and directories. Where no signal is sent, the commands run in
 * this process.
 */

// Several processes a test, on machines that may have little to spare.

const EVENTS = 'application/vnd.eventstore.events+json';
/** The smallest, so that a few hundred events fill several. */
const CHUNK_SIZE = ['--chunk-size', '128KiB'];
/** Nearly all of the time is pauses: a run of milliseconds lasts long enough to be looked at. */
const SLOWLY = ['--throttle-percent', '1'];

type Node = Awaited<ReturnType<typeof startedNode>>;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-scavenge-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function idOf(stream: number, number: number): string {
  return `00000000-0000-4000-8${String(stream).padStart(3, '0')}-${String(number).padStart(12, '0')}`;
}

function streamUrl(node: Node, stream: string, rest = ''): string {
  return `${node.url}/streams/${encodeURIComponent(stream)}${rest}`;
}

/** Appends `count` events of 2 kB. */
async function fill(node: Node, stream: string, key: number, count: number): Promise<void> {
  for (let first = 0; first < count; first += 25) {
    const batch = Array.from({ length: Math.min(25, count - first) }, (_, i) => ({
      eventId: idOf(key, first + i),
      eventType: 'parcel',
      data: { text: `${stream} ${first + i} `.repeat(2_000 / (stream.length + 5)) },
    }));
    expect(
      (
        await fetch(streamUrl(node, stream), {
          method: 'POST',
          headers: { 'content-type': EVENTS },
          body: JSON.stringify(batch),
        })
      ).status,
    ).toBe(201);
  }
}

/**
 * Stream `kept` of 10 events, `gone` of 100 hard-deleted ones, `short/ü` of 100 of which 5 stay: about 400 KiB in four
 * chunks.
 */
/**
 * Commands on a stopped directory open it with the filter that a node has unless it is told otherwise, and say so when
 * they find another one.
 */
const FILTER = ['--stream-existence-filter-size', '33554432'];

async function filledNode(words: readonly string[] = []): Promise<Node> {
  const node = await startedNode(['--db', folder, ...CHUNK_SIZE, ...FILTER, ...words]);
  await fill(node, 'kept', 1, 10);
  await fill(node, 'gone', 2, 100);
  await fill(node, 'short/ü', 3, 100);
  const metadata = [{ eventId: idOf(4, 0), eventType: '$metadata', data: { $maxCount: 5 } }];
  expect(
    (
      await fetch(streamUrl(node, 'short/ü', '/metadata'), {
        method: 'POST',
        headers: { 'content-type': EVENTS },
        body: JSON.stringify(metadata),
      })
    ).status,
  ).toBe(201);
  expect(
    (await fetch(streamUrl(node, 'gone'), { method: 'DELETE', headers: { 'es-harddelete': 'true' } })).status,
  ).toBe(204);
  return node;
}

async function json<T>(url: string): Promise<T> {
  return (await (await fetch(url, { headers: { accept: 'application/json' } })).json()) as T;
}

/** The result that the history has of a run. */
async function resultOf(node: Node, scavengeId: string): Promise<string | undefined> {
  const { entries } = await json<{ entries: { eventType: string; data: string }[] }>(
    `${node.url}/streams/$scavenges/${scavengeId}/head/5?embed=body`,
  );
  const completed = entries.find(({ eventType }) => eventType === '$scavengeCompleted');
  return completed === undefined ? undefined : (JSON.parse(completed.data) as { result: string }).result;
}

const run = (words: readonly string[]) => runBy(new FakeIo(), words);

function linesOf(text: string): Record<string, unknown>[] {
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test('from the dry run to the proof', async () => {
  const node = await filledNode();
  const at = ['--node', node.url];
  const chunksBefore = readdirSync(folder).filter((name) => name.startsWith('chunk-'));
  expect(chunksBefore.length).toBeGreaterThan(3);
  const proof = ['prove-erased', '--stream', 'gone', '--db', folder];

  const before = await run([...proof, '--json']);
  expect(before.code).toBe(1);
  const findings = linesOf(before.out);
  expect(findings.at(-1)).toMatchObject({ kind: 'summary', directory: folder });
  expect(findings.find(({ kind }) => kind === 'trace')).toMatchObject({
    file: expect.stringMatching(/^chunk-/),
    offset: expect.any(Number),
  });
  expect(await run(['prove-erased', '--event', idOf(2, 7), '--event', idOf(2, 8), '--db', folder])).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^trace +chunk-\S+ at \d+: /m),
  });

  const explained = JSON.parse((await run(['explain', 'short/ü', ...at, '--json'])).out) as {
    removed: unknown;
    kept: { from: number; to: number }[];
  };
  expect(explained.removed).toEqual([{ from: 0, to: 94, count: 95, bytes: expect.any(Number), rule: '$maxCount' }]);
  expect([explained.kept[0]!.from, explained.kept.at(-1)!.to]).toEqual([95, 99]);

  const dry = await run(['scavenge', 'start', '--dry-run', ...at, '--json']);
  expect(dry).toMatchObject({ code: 0, err: '' });
  const { totals } = JSON.parse(dry.out) as {
    totals: { discardable: number; bytesReclaimable: number; chunksExecuted: number };
  };
  expect(totals.discardable).toBe(195);
  expect(totals.bytesReclaimable).toBeGreaterThan(250_000);
  expect((await run(['scavenge', 'start', '--dry-run', ...at])).out).toMatch(/^chunk-000000\.000000 +0 .*yes$/m);
  expect(readdirSync(folder).filter((name) => name.startsWith('chunk-'))).toEqual(chunksBefore);

  const done = await skua(['scavenge', 'start', '--threads', '2', '--watch', '--json', ...at]).ended;
  expect(done).toMatchObject({ code: 0, err: '' });
  const result = linesOf(done.out).at(-1)!;
  expect(result).toMatchObject({ kind: 'result', result: 'Success', error: null, scavengeId: expect.any(String) });
  expect(result['bytesReclaimed']).toBeGreaterThan(totals.bytesReclaimable * 0.8);
  expect((await run(['scavenge', 'status', ...at])).out).toMatch(
    /^No scavenge is running\. The last one:\nDone after /,
  );

  expect(await run([...proof, '--json'])).toMatchObject({ code: 0, err: '' });
  const after = await run(proof);
  expect(after).toMatchObject({ code: 0, out: expect.stringMatching(/^residue .*tombstone/m) });
  expect(after.out).toContain('no trace');
  expect(
    (await run(['prove-erased', '--event', idOf(2, 7), idOf(3, 94), '--allow-unknown', '--db', folder])).code,
  ).toBe(0);
  expect((await run(['prove-erased', '--event', idOf(3, 95), '--db', folder])).code).toBe(1);

  const lines = (
    await (await fetch(streamUrl(node, 'short/ü'), { headers: { accept: 'application/x-ndjson' } })).text()
  )
    .trim()
    .split('\n');
  expect(lines).toHaveLength(5);
  await node.stop();
  expect(await run(['explain', 'short/ü', '--db', folder])).toMatchObject({
    code: 0,
    err: '',
    out: expect.stringContaining('A scavenge would remove nothing.'),
  });
  expect((await run(['verify', folder])).code).toBe(0);
});

describe('a run that lasts', () => {
  test('is watched, refuses another one, is stopped, and goes on', async () => {
    const node = await filledNode();
    const at = ['--node', node.url];
    const { scavengeId } = JSON.parse((await run(['scavenge', 'start', ...SLOWLY, ...at, '--json'])).out) as {
      scavengeId: string;
    };
    const watch = skua(['scavenge', 'watch', ...at, '--json']);
    await watch.seen(/"kind":"progress"/);
    expect(await json(`${node.url}/admin/scavenge/current`)).toEqual({
      scavengeId,
      scavengeLink: `/admin/scavenge/${scavengeId}`,
    });
    expect(await run(['scavenge', 'start', ...at])).toMatchObject({
      code: 4,
      out: '',
      err: expect.stringContaining(scavengeId),
    });
    const status = JSON.parse((await run(['scavenge', 'status', '--json', ...at])).out) as {
      running: unknown;
      last: unknown;
    };
    expect(status).toMatchObject({
      running: { scavengeId, phase: expect.any(String), startedAt: expect.stringMatching(/^\d{4}-.*Z$/) },
      last: { scavengeId, scavengeResult: 'InProgress' },
    });

    expect(await run(['scavenge', 'stop', ...at])).toMatchObject({
      code: 0,
      out: expect.stringContaining(`${scavengeId} has stopped`),
    });
    const watched = await watch.ended;
    expect(watched.code).toBe(1);
    expect(linesOf(watched.out).at(-1)).toMatchObject({ kind: 'result', scavengeId, result: 'Stopped' });
    expect(await run(['scavenge', 'stop', ...at])).toMatchObject({
      code: 1,
      err: expect.stringContaining('No scavenge is running.'),
    });

    const second = await run(['scavenge', 'start', '--wait', '--json', ...at]);
    expect(second.code).toBe(0);
    const result = linesOf(second.out).at(-1)!;
    expect(result).toMatchObject({ result: 'Success' });
    expect(result['scavengeId']).not.toBe(scavengeId);
    // Both worked to one point.
    expect((await json<{ entries: unknown[] }>(`${node.url}/streams/$scavengePoints`)).entries).toHaveLength(1);
    await node.stop();
  });

  test('outlives who watches it', async () => {
    const node = await filledNode();
    const watch = skua(['scavenge', 'start', '--watch', '--json', ...SLOWLY, '--node', node.url]);
    await watch.seen(/"kind":"progress"/);
    watch.child.kill('SIGINT');
    expect(await watch.ended).toMatchObject({ code: 130, err: expect.stringContaining('skua scavenge stop') });
    expect(await json(`${node.url}/admin/scavenge/last`)).toMatchObject({ scavengeResult: 'InProgress' });
    expect((await node.stop()).code).toBe(0);
  });

  test('is ended by a shutdown, told as interrupted after the restart, and goes on', async () => {
    const node = await filledNode();
    const { scavengeId } = JSON.parse(
      (await run(['scavenge', 'start', ...SLOWLY, '--json', '--node', node.url])).out,
    ) as { scavengeId: string };
    expect((await node.stop()).code).toBe(0);
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    const again = await startedNode(['--db', folder, ...FILTER]);
    // Where its point was written already, it waits to go on.
    expect(await json(`${again.url}/admin/scavenge/current`)).toMatchObject({ scavengeId: '', scavengeLink: '' });
    expect((await run(['scavenge', 'start', '--wait', '--node', again.url])).code).toBe(0);
    // The repair of the history runs in the background of the start, and the run came after it.
    expect(await resultOf(again, scavengeId)).toBe('Interrupted');
    expect((await run(['prove-erased', '--event', idOf(2, 7), '--allow-unknown', '--db', folder])).code).toBe(0);
    await again.stop();
  });
});

describe('options of a node', () => {
  test('merging can be switched off; dangerous ones are warned of', async () => {
    const node = await filledNode([
      '--disable-scavenge-merging',
      '--unsafe-ignore-hard-delete',
      '--scavenge-history-max-age',
      '7',
      '--scavenge-backend-cache-size',
      '1MiB',
      '--scavenge-hash-users-cache-capacity',
      '10',
    ]);
    expect(
      node.process
        .logged()
        .filter(({ level }) => level === 'warn')
        .map(({ msg }) => msg),
    ).toContainEqual(expect.stringContaining('--unsafe-ignore-hard-delete'));
    expect((await run(['scavenge', 'start', '--wait', '--node', node.url])).code).toBe(0);
    const chunks = readdirSync(folder)
      .filter((name) => name.startsWith('chunk-'))
      .sort();
    expect(chunks.length).toBeGreaterThan(4);
    expect(chunks.slice(0, 3)).toEqual(['chunk-000000.000001', 'chunk-000001.000001', 'chunk-000002.000001']);
    expect(await json(`${node.url}/streams/$scavenges/metadata`)).toMatchObject({ $maxAge: 604_800 });
    // With the option the name is free again.
    await fill(node, 'gone', 5, 1);
    await node.stop();
  });

  test('the page size is that of the first run, and another one is told', async () => {
    const node = await filledNode(['--scavenge-backend-page-size', '4']);
    expect((await run(['scavenge', 'start', '--wait', '--node', node.url])).code).toBe(0);
    await node.stop();
    const again = await startedNode(['--db', folder, '--scavenge-backend-page-size', '8']);
    const failed = await run(['scavenge', 'start', '--wait', '--node', again.url]);
    expect(failed).toMatchObject({ code: 1, out: expect.stringMatching(/^Failed.*4096.*8192/) });
    await again.stop();
  });

  test('a node in memory scavenges, too', async () => {
    const node = await startedNode(['--mem-db', ...CHUNK_SIZE]);
    await fill(node, 'gone', 2, 60);
    expect(
      (await fetch(streamUrl(node, 'gone'), { method: 'DELETE', headers: { 'es-harddelete': 'true' } })).status,
    ).toBe(204);
    const done = await run(['scavenge', 'start', '--wait', '--json', '--node', node.url]);
    expect(done.code).toBe(0);
    expect(linesOf(done.out).at(-1)!['bytesReclaimed']).toBeGreaterThan(80_000);
    await node.stop();
  });
});

describe('offline', () => {
  test('dry run, run, summary', async () => {
    await (await filledNode()).stop();
    const dry = await run(['scavenge', 'offline', folder, '--dry-run', '--json']);
    expect(dry).toMatchObject({ code: 0, err: '' });
    expect(JSON.parse(dry.out)).toMatchObject({
      totals: { discardable: 195 },
      point: { effectiveNow: expect.any(String) },
    });
    expect(existsSync(path.join(folder, 'index', 'scavenging', 'scavenging.db'))).toBe(false);

    const done = await run(['scavenge', 'offline', folder, '--threads', '2', '--json']);
    expect(done).toMatchObject({ code: 0, err: '' });
    const summary = JSON.parse(done.out) as Record<string, number>;
    expect(summary).toMatchObject({
      result: 'Success',
      error: null,
      diskBytesBefore: expect.any(Number),
      diskBytesAfter: expect.any(Number),
    });
    expect(summary['bytesReclaimed']).toBeGreaterThan(250_000);
    expect(await run(['scavenge', 'offline', folder])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Done after .*\nOn disk: .* before, .* after\.\n$/),
    });
    expect((await run(['verify', folder])).code).toBe(0);
    expect((await run(['prove-erased', '--stream', 'gone', '--db', folder])).code).toBe(0);
  });

  test('Ctrl+C stops it cleanly, and the next one goes on', async () => {
    await (await filledNode()).stop();
    const slow = skua(['scavenge', 'offline', folder, '--json', ...SLOWLY]);
    const database = path.join(folder, 'index', 'scavenging', 'scavenging.db');
    while (!existsSync(database) || statSync(database).size === 0)
      await new Promise((resolve) => {
        setTimeout(resolve, 20);
      });
    slow.child.kill('SIGINT');
    const stopped = await slow.ended;
    expect(stopped).toMatchObject({ code: 130, err: expect.stringContaining('error interrupted: ') });
    expect(JSON.parse(stopped.out)).toMatchObject({ result: 'Stopped' });
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    const next = await run(['scavenge', 'offline', folder, '--json']);
    expect(next.code).toBe(0);
    const node = await startedNode(['--db', folder, ...FILTER]);
    expect((await json<{ entries: unknown[] }>(`${node.url}/streams/$scavengePoints`)).entries).toHaveLength(1);
    await node.stop();
  });

  test('one that did not end is gone on with and said to be, done with its rest, or abandoned', async () => {
    await (await filledNode()).stop();
    const database = path.join(folder, 'index', 'scavenging', 'scavenging.db');
    const stopped = async () => {
      const chunks = () =>
        readdirSync(folder)
          .filter((name) => name.startsWith('chunk-'))
          .sort()
          .join();
      const before = chunks();
      // Its point completes a chunk, and the next one begins.
      const { promise: hasPoint, resolve } = Promise.withResolvers<void>();
      const watcher = watch(folder, () => {
        if (chunks() !== before) resolve();
      });
      const slow = skua(['scavenge', 'offline', folder, '--threshold', '-1', ...SLOWLY]);
      await hasPoint;
      watcher.close();
      slow.child.kill('SIGINT');
      expect((await slow.ended).code).toBe(130);
    };
    await stopped();
    expect(existsSync(database)).toBe(true);
    expect((await run(['scavenge', 'offline', folder, '--dry-run'])).out).toMatch(
      /The next start (?:resumes|uses) .*skua scavenge offline .* --fresh/,
    );
    expect((await run(['explain', 'gone', '--db', folder])).out).toContain('The next start is not this scavenge');
    const done = await run(['scavenge', 'offline', folder, '--until-clean']);
    expect(done).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Done up to .*needs another run\.\nDone after .*\nOn disk: /),
      err: expect.stringMatching(/^It (?:resumes|uses) the scavenge/),
    });
    await stopped();
    const fresh = JSON.parse((await run(['scavenge', 'offline', folder, '--fresh', '--json'])).out) as Record<
      string,
      unknown
    >;
    expect(fresh).toMatchObject({ result: 'Success' });
    expect(fresh).not.toHaveProperty('olderPoint');
    expect((await run(['verify', folder])).code).toBe(0);
    // Of what never was nothing is proved.
    const unknown = ['prove-erased', '--stream', 'nobody', '--db', folder];
    expect(await run(unknown)).toMatchObject({
      code: 1,
      out: expect.stringContaining('no trace, and no sign that there ever was a stream "nobody"'),
    });
    expect([
      linesOf((await run([...unknown, '--json'])).out).at(-1),
      linesOf((await run(['prove-erased', '--stream', 'gone', '--db', folder, '--json'])).out).at(-1),
    ]).toMatchObject([
      { kind: 'summary', traces: 0, streamKnown: false },
      { traces: 0, streamKnown: true },
    ]);
    expect((await run([...unknown, '--allow-unknown'])).code).toBe(0);
    const unknownId = '9c2f4a1b-7e3d-4b5a-a6c8-d9e0f1a2b3c4';
    expect(await run(['prove-erased', '--event', unknownId, '--db', folder])).toMatchObject({
      code: 1,
      out: expect.stringContaining(`No sign that there ever was an event ${unknownId}`),
    });
    expect(
      linesOf((await run(['prove-erased', '--event', unknownId, '--db', folder, '--json'])).out).at(-1),
    ).toMatchObject({ traces: 0, unknownEvents: [unknownId] });
  });

  test('a directory in use, one without a database, and none: 3', async () => {
    const node = await startedNode(['--db', folder, ...FILTER]);
    for (const words of [
      ['scavenge', 'offline', folder],
      ['explain', 'kept', '--db', folder],
    ]) {
      expect(await run(words)).toMatchObject({
        code: 3,
        out: '',
        err: expect.stringContaining('error directory_locked: '),
      });
    }
    // What only reads runs beside a node.
    expect((await run(['prove-erased', '--event', idOf(1, 1), '--allow-unknown', '--db', folder])).code).toBe(0);
    await node.stop();
    const empty = mkdtempSync(path.join(folder, 'empty-'));
    const absent = path.join(folder, 'absent');
    for (const words of [
      ['scavenge', 'offline'],
      ['explain', 's', '--db'],
      ['prove-erased', '--stream', 's', '--db'],
    ]) {
      expect(await run([...words, empty])).toMatchObject({
        code: 3,
        out: '',
        err: expect.stringContaining('error not_a_data_directory: '),
      });
      expect(await run([...words, absent])).toMatchObject({
        code: 3,
        out: '',
        err: expect.stringContaining('error not_a_directory: '),
      });
    }
    expect(readdirSync(empty)).toEqual([]);
  });
});
