import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { BackupSource } from '../../../core/store/source/source.ts';
import { openHttpSource } from '../../../local/backup/http-source.ts';
import { NodeClient } from '../../../local/cli/node-client.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { fakeHold, HOLD_ID } from './fake-hold.ts';
import type { FakeHold } from './fake-hold.ts';

/** Files of a node over connections that break. */

/** Short waits are over at once; long ones, for renewals and silence, are driven by the test. */
class ShortSleeps extends ManualClock {
  override sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return ms < 20_000
      ? new Promise((resolve) => {
          setImmediate(resolve);
        })
      : super.sleep(ms, signal);
  }
}

const TEXT = 'abcdefghij'.repeat(20);
let fake: FakeHold;
let clock: ShortSleeps;
let stop: AbortController;

beforeEach(async () => {
  fake = await fakeHold({ 'chunk-000000.000000': TEXT, 'index/stream-existence/streamExistenceFilter.dat': 'filter' });
  clock = new ShortSleeps();
  stop = new AbortController();
});
afterEach(() => fake.close());

function open(): Promise<BackupSource> {
  return openHttpSource({ node: new NodeClient(fake.url, {}), clock, signal: stop.signal });
}

async function read(
  source: BackupSource,
  path = 'chunk-000000.000000',
  position = 0,
  length = TEXT.length,
): Promise<string> {
  let text = '';
  for await (const piece of source.read(path, position, length)) text += Buffer.from(piece).toString();
  return text;
}

const reads = () => fake.calls.filter((call) => call.startsWith('GET /admin/backup/files/'));

test('holds, lists, reads parts of files, and lets go', async () => {
  const source = await open();
  expect(source.snapshot).toMatchObject({
    nodeId: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
    files: [
      { path: 'chunk-000000.000000', sizeBytes: 200 },
      { kind: 'existence-filter', sizeBytes: 6 },
    ],
  });
  expect(await read(source, 'chunk-000000.000000', 3, 4)).toBe('defg');
  expect(await read(source, 'index/stream-existence/streamExistenceFilter.dat', 0, 6)).toBe('filter');
  await source.release();
  await source.release();
  expect(fake.isHeld).toBe(false);
  expect(fake.calls).toEqual([
    'POST /admin/backup/hold',
    'GET /admin/backup/files?hold',
    'GET /admin/backup/files/chunk-000000.000000?hold&from=3&length=4',
    'GET /admin/backup/files/index/stream-existence/streamExistenceFilter.dat?hold&from=0&length=6',
    `DELETE /admin/backup/hold/${HOLD_ID}`,
  ]);
});

test('a list that names what no data directory has is refused as a whole, and the hold let go', async () => {
  const sound = {
    nodeId: 'aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee',
    takenMs: 1,
    chunkSizeBytes: 65_536,
    checkpoints: { writer: 9, chaser: 9, epoch: -1, proposal: -1 },
  };
  const chunk = { path: 'chunk-000000.000000', kind: 'chunk', sizeBytes: 1 };
  const lists: (readonly [unknown, string])[] = [
    ...['session.key', '../x', '/etc/passwd', 'index/x', 'skua.lock', 'chunk-000000.000000.tmp', ''].map(
      (name) => [{ ...sound, files: [chunk, { ...chunk, path: name }] }, 'files[1].path'] as const,
    ),
    [{ ...sound, files: [{ ...chunk, kind: 'proof' }] }, 'files[0].path'],
    [{ ...sound, files: [{ ...chunk, kind: 'key' }] }, 'files[0].kind'],
    [{ ...sound, files: [chunk, chunk] }, 'files[1].path'],
    [{ ...sound, files: [{ ...chunk, sizeBytes: -1 }] }, 'files[0].sizeBytes'],
    [{ ...sound, nodeId: '../x', files: [] }, 'nodeId'],
    [{ ...sound }, 'files'],
    [[], ''],
    [null, ''],
  ];
  for (const [list, member] of lists) {
    fake.fault = (request, response) => {
      if (request.method !== 'GET') return false;
      response.writeHead(200).end(JSON.stringify(list));
      return true;
    };
    await expect(open(), JSON.stringify(list)).rejects.toMatchObject({ code: 'backup_failed', data: { member } });
    expect(fake.isHeld).toBe(false);
  }
});

describe('a read goes on where it broke off', () => {
  test.each([
    {
      name: 'the connection breaks in the middle',
      send: (response: import('node:http').ServerResponse) => {
        response.writeHead(200, { 'content-length': '200' }).write(TEXT.slice(0, 50), () => response.destroy());
      },
      from: 50,
    },
    {
      name: 'the answer ends early',
      send: (response: import('node:http').ServerResponse) => {
        response.writeHead(200).end(TEXT.slice(0, 70));
      },
      from: 70,
    },
    {
      name: 'the connection breaks before the answer',
      send: (response: import('node:http').ServerResponse) => {
        response.destroy();
      },
      from: 0,
    },
    {
      name: 'the node is busy',
      send: (response: import('node:http').ServerResponse) => {
        response
          .writeHead(503, { 'content-type': 'application/problem+json' })
          .end(JSON.stringify({ code: 'not_ready', detail: 'Later.' }));
      },
      from: 0,
    },
  ])('when $name', async ({ send, from }) => {
    const source = await open();
    let faults = 1;
    fake.fault = (request, response) => {
      if (!request.url!.includes('/files/') || faults-- <= 0) return false;
      send(response);
      return true;
    };
    expect(await read(source)).toBe(TEXT);
    expect(reads()).toEqual([
      'GET /admin/backup/files/chunk-000000.000000?hold&from=0&length=200',
      `GET /admin/backup/files/chunk-000000.000000?hold&from=${from}&length=${200 - from}`,
    ]);
    await source.release();
  });

  test('when nothing comes any more', async () => {
    const source = await open();
    let faults = 1;
    fake.fault = (request, response) => {
      if (!request.url!.includes('/files/') || faults-- <= 0) return false;
      response.writeHead(200, { 'content-length': '200' });
      response.write(TEXT.slice(0, 10), () =>
        setImmediate(() => {
          void clock.advance(30_000);
        }),
      );
      return true;
    };
    expect(await read(source)).toBe(TEXT);
    expect(reads()).toHaveLength(2);
    await source.release();
  });
});

test('a connection that always breaks is given up, with what to do', async () => {
  const source = await open();
  fake.fault = (request, response) => {
    if (!request.url!.includes('/files/')) return false;
    response.destroy();
    return true;
  };
  await expect(read(source)).rejects.toMatchObject({
    code: 'node_unreachable',
    exitCode: 3,
    message: expect.stringContaining('Repeat the command'),
  });
  expect(reads()).toHaveLength(7);
  await source.release();
});

test('a hold that has ended and a file that is gone are told as such', async () => {
  const source = await open();
  await expect(read(source, 'chunk-000009.000000', 0, 1)).rejects.toMatchObject({ code: 'file_not_found' });
  fake.isHeld = false;
  await expect(read(source)).rejects.toMatchObject({ code: 'hold_not_found' });
  await source.release();
});

test('is renewed every 20 s, also after a renewal that failed, until it is released', async () => {
  const source = await open();
  const renewals = () => fake.calls.filter((call) => call === `POST /admin/backup/hold/${HOLD_ID}`).length;
  let seen = 0;
  let wake = () => {};
  fake.fault = (request, response) => {
    if (request.method !== 'POST') return false;
    seen++;
    if (seen === 1) response.destroy();
    else response.writeHead(200).end('{}');
    setImmediate(() => wake());
    return true;
  };
  for (const expected of [1, 2, 3]) {
    const renewed = new Promise<void>((resolve) => {
      wake = resolve;
    });
    while (clock.sleeping === 0)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    await clock.advance(20_000);
    await renewed;
    expect(renewals()).toBe(expected);
  }
  await source.release();
  expect(clock.sleeping).toBe(0);
});

test('an abort ends a read with its reason', async () => {
  const source = await open();
  const reason = new Error('stop');
  fake.fault = (request, response) => {
    if (!request.url!.includes('/files/')) return false;
    response.writeHead(200, { 'content-length': '200' });
    response.write(TEXT.slice(0, 10), () => stop.abort(reason));
    return true;
  };
  await expect(read(source)).rejects.toBe(reason);
  await source.release();
  expect(fake.isHeld).toBe(false);
});

test('a refusal of the node is passed on, and where the list fails the hold is let go', async () => {
  fake.fault = (_request, response) => {
    response
      .writeHead(409, { 'content-type': 'application/problem+json' })
      .end(JSON.stringify({ code: 'scavenge_in_progress', detail: 'A scavenge runs.', scavengeId: 'x' }));
    return true;
  };
  await expect(open()).rejects.toMatchObject({ code: 'scavenge_in_progress', exitCode: 4 });
  fake.fault = (request, response) => {
    if (!request.url!.includes('/files?')) return false;
    response
      .writeHead(403, { 'content-type': 'application/problem+json' })
      .end(JSON.stringify({ code: 'access_denied', detail: 'No.' }));
    return true;
  };
  await expect(open()).rejects.toMatchObject({ code: 'access_denied', exitCode: 4 });
  expect(fake.isHeld).toBe(false);
});
