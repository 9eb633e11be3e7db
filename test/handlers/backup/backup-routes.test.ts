import { describe, expect, test } from 'vitest';
import { HOLD_MS } from '../../../core/store/hold/hold.ts';
import { SkuaError } from '../../../core/base/errors.ts';
import { BACKUP_ID, fakeBackups, HOLD_ID, SNAPSHOT } from '../../support/backup/fake-backups.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { harness, ORIGIN } from '../harness.ts';

async function world() {
  const clock = new ManualClock();
  const backups = await fakeBackups(clock);
  return { ...harness({ backups, clock }), clock, node: backups.node, holds: backups.holds };
}

const CHUNK = '/admin/backup/files/chunk-000000.000000';
const CHUNK_BYTES = SNAPSHOT.files[1]!.content!;

describe('a hold', () => {
  test('is begun, renewed and released', async () => {
    const { send, clock, node } = await world();
    const begun = await send('POST', '/admin/backup/hold');
    expect([begun.status, begun.json()]).toEqual([
      200,
      {
        holdId: HOLD_ID,
        expiresAt: '2024-01-01T00:01:00Z',
        nodeId: SNAPSHOT.nodeId,
        takenAt: '2031-04-02T09:15:00Z',
        logEnd: 300,
        files: 2,
        sizeBytes: 436,
      },
    ]);
    await clock.advance(HOLD_MS - 1);
    expect((await send('POST', `/admin/backup/hold/${HOLD_ID}`)).json()).toMatchObject({
      holdId: HOLD_ID,
      expiresAt: '2024-01-01T00:01:59.999Z',
    });
    expect(node.held).toBe(1);
    expect(await send('DELETE', `/admin/backup/hold/${HOLD_ID}`)).toMatchObject({ status: 204, text: '' });
    expect(node.held).toBe(0);
    expect((await send('DELETE', `/admin/backup/hold/${HOLD_ID}`)).json()).toMatchObject({ code: 'hold_not_found' });
  });

  test('that has ended is 404 everywhere', async () => {
    const { send, clock, node } = await world();
    await send('POST', '/admin/backup/hold');
    await clock.advance(HOLD_MS);
    expect(node.held).toBe(0);
    for (const [method, path] of [
      ['POST', `/admin/backup/hold/${HOLD_ID}`],
      ['DELETE', `/admin/backup/hold/${HOLD_ID}`],
      ['GET', `/admin/backup/files?hold=${HOLD_ID}`],
      ['GET', `${CHUNK}?hold=${HOLD_ID}`],
    ] as const) {
      const reply = await send(method, path);
      expect([reply.status, reply.json().code]).toEqual([404, 'hold_not_found']);
    }
  });

  test('is refused while a scavenge runs, and when there are too many', async () => {
    const { send, node } = await world();
    for (let i = 0; i < 4; i++) expect((await send('POST', '/admin/backup/hold')).status).toBe(200);
    const full = await send('POST', '/admin/backup/hold');
    expect([full.status, full.headers.get('retry-after'), full.json().code]).toEqual([503, '1', 'too_busy']);
    await send('DELETE', `/admin/backup/hold/${HOLD_ID}`);
    node.error = new SkuaError('scavenge_in_progress', 'One runs.', { scavengeId: 'x' });
    const reply = await send('POST', '/admin/backup/hold');
    expect([reply.status, reply.json()]).toEqual([
      409,
      { code: 'scavenge_in_progress', title: 'Conflict', detail: 'One runs.', scavengeId: 'x' },
    ]);
  });
});

describe('files', () => {
  test('are listed as the snapshot has them', async () => {
    const { send, get } = await world();
    await send('POST', '/admin/backup/hold');
    const { files, ...rest } = SNAPSHOT;
    expect((await get(`/admin/backup/files?hold=${HOLD_ID}`)).json()).toEqual({
      ...rest,
      files: files.map(({ path, kind, sizeBytes }) => ({ path, kind, sizeBytes })),
    });
    for (const query of ['', '?hold=', '?other=1'])
      expect((await get(`/admin/backup/files${query}`)).json()).toMatchObject({ code: 'bad_request' });
  });

  const bytesOf = async (reply: Response): Promise<number[]> => [...new Uint8Array(await reply.arrayBuffer())];

  test.each([
    ['', {}, 200, 0, 428, null],
    ['', { range: 'bytes=0-127' }, 206, 0, 128, 'bytes 0-127/428'],
    ['', { range: 'bytes=400-' }, 206, 400, 428, 'bytes 400-427/428'],
    ['', { range: 'bytes=-8' }, 206, 420, 428, 'bytes 420-427/428'],
    ['', { range: 'bytes=-9999' }, 206, 0, 428, 'bytes 0-427/428'],
    ['', { range: 'bytes=100-9999' }, 206, 100, 428, 'bytes 100-427/428'],
    // What is no range of one part is left aside.
    ['', { range: 'bytes=0-1,4-5' }, 200, 0, 428, null],
    ['', { range: 'lines=0-1' }, 200, 0, 428, null],
    ['', { range: 'bytes=9-2' }, 200, 0, 428, null],
    ['', { range: 'bytes=-' }, 200, 0, 428, null],
    ['&from=10', {}, 200, 10, 428, null],
    ['&from=10&length=5', { range: 'bytes=0-0' }, 200, 10, 15, null],
    ['&length=7', {}, 200, 0, 7, null],
    ['&from=428', {}, 200, 428, 428, null],
    ['&from=420&length=999999999999999', {}, 200, 420, 428, null],
  ] as const)('%s %j', async (query, headers, status, from, to, contentRange) => {
    const { send, raw } = await world();
    await send('POST', '/admin/backup/hold');
    const reply = await raw('GET', `${CHUNK}?hold=${HOLD_ID}${query}`, headers);
    expect([
      reply.status,
      reply.headers.get('content-length'),
      reply.headers.get('content-range'),
      reply.headers.get('content-type'),
    ]).toEqual([status, String(to - from), contentRange, 'application/octet-stream']);
    expect(await bytesOf(reply)).toEqual([...CHUNK_BYTES.subarray(from, to)]);
  });

  test.each([
    ['', { range: 'bytes=428-' }],
    ['', { range: 'bytes=-0' }],
    ['&from=429', {}],
  ] as const)('%s %j is not in it', async (query, headers) => {
    const { send } = await world();
    await send('POST', '/admin/backup/hold');
    const reply = await send('GET', `${CHUNK}?hold=${HOLD_ID}${query}`, headers);
    expect([reply.status, reply.headers.get('content-range'), reply.json()]).toMatchObject([
      416,
      'bytes */428',
      { code: 'range_not_satisfiable' },
    ]);
  });

  test.each(['from=x', 'from=-1', 'length=1.5', 'from=', 'length=1e3', 'from=9999999999999999'])(
    '%s is 400',
    async (query) => {
      const { send, get } = await world();
      await send('POST', '/admin/backup/hold');
      expect((await get(`${CHUNK}?hold=${HOLD_ID}&${query}`)).status).toBe(400);
    },
  );

  test.each([
    'chunk-000001.000000',
    'node-id',
    'skua.lock',
    'index',
    'index/',
    '%2e%2e/secret',
    '..%2fsecret',
    '..%5csecret',
    '%2fetc%2fpasswd',
    '/etc/passwd',
    'index/..%2fchunk-000000.000000',
    './chunk-000000.000000%00',
    'chunk-000000.000000/',
    'chunk-000000.000000%00',
    '%zz',
    '%E0%A4%A',
    'constructor',
    'CHUNK-000000.000000',
    'a'.repeat(4_000),
  ])('%s is no file of the list', async (path) => {
    const h = await world();
    await h.send('POST', '/admin/backup/hold');
    // As it would arrive: without the rules by which URL parsers take dots away.
    const url = `${ORIGIN}/admin/backup/files/${path}?hold=${HOLD_ID}`;
    const reply = await h.app({ url, method: 'GET', headers: new Headers() } as Request);
    expect([reply.status, ((await reply.json()) as { code: string }).code]).toEqual([404, 'not_found']);
  });

  test('in folders are found, however their names are escaped', async () => {
    const { send, raw } = await world();
    await send('POST', '/admin/backup/hold');
    for (const path of [
      'index/stream-existence/streamExistenceFilter.chk',
      'index/stream-existence%2FstreamExistenceFilter%2Echk',
    ]) {
      expect(await bytesOf(await raw('GET', `/admin/backup/files/${path}?hold=${HOLD_ID}`))).toEqual(Array(8).fill(7));
    }
  });

  test('a reader that goes away lets go of the file, and reading renews the hold', async () => {
    const { send, raw, clock, holds } = await world();
    await send('POST', '/admin/backup/hold');
    await clock.advance(HOLD_MS - 1);
    const reply = await raw('GET', `${CHUNK}?hold=${HOLD_ID}`);
    await clock.advance(HOLD_MS - 1);
    expect(holds.count).toBe(1);
    await reply.body!.cancel();
    await clock.advance(1);
    expect(holds.count).toBe(0);
  });
});

const JSON_TYPE = { 'content-type': 'application/json' };

describe('backups of the node', () => {
  test('are started, watched and ended', async () => {
    const { send, get, node } = await world();
    expect((await get('/admin/backup/current')).json()).toEqual({
      code: 'backup_not_running',
      title: 'Not Found',
      detail: 'No backup is running.',
    });
    const started = await send('POST', '/admin/backup');
    expect([started.status, started.json()]).toEqual([202, { backupId: BACKUP_ID }]);
    expect((await get('/admin/backup/current')).json()).toEqual({
      backupId: BACKUP_ID,
      phase: 'Copying',
      bytesDone: 5,
      bytesTotal: 10,
      startedAt: '2031-04-02T09:00:00Z',
      elapsedSeconds: 1.5,
      remainingSeconds: 1.5,
    });
    const again = await send('POST', '/admin/backup');
    expect([again.status, again.json()]).toMatchObject([409, { code: 'backup_running', backupId: BACKUP_ID }]);
    const ended = await send('DELETE', '/admin/backup/current');
    expect([ended.status, ended.json()]).toEqual([200, { backupId: BACKUP_ID }]);
    expect((await send('DELETE', '/admin/backup/current')).status).toBe(404);
    node.lastNow = { backupId: BACKUP_ID, result: 'Failed', error: 'The bucket is gone.' };
    expect((await get('/admin/backup/current')).json().hint).toBe(
      `The result of the last one, ${BACKUP_ID}: Failed. The bucket is gone.`,
    );
  });

  test('are listed', async () => {
    const { get } = await world();
    expect((await get('/admin/backups')).json()).toEqual({
      restorable: [{ from: '2031-04-01T08:00:00Z', to: '2031-04-01T09:30:00.25Z' }],
      backups: [
        {
          id: BACKUP_ID,
          createdAt: '2031-04-02T09:00:00Z',
          logEnd: 1_000,
          shippedEnd: 1_500,
          shippedAt: '2031-04-02T09:10:00Z',
          sizeBytes: 4_096,
          cause: 'manual',
          nodeId: SNAPSHOT.nodeId,
        },
      ],
    });
  });

  test.each([
    ['?pauseScavenge=true', null, true],
    ['?pauseScavenge=false', null, false],
    ['', '{"pauseScavenge":true}', true],
    ['', '{}', false],
    ['?format=json', '', false],
    ['?pauseScavenge=true', '{"pauseScavenge":false}', true],
  ] as const)('%s %s', async (query, body, pauseScavenge) => {
    const { send, node } = await world();
    expect((await send('POST', `/admin/backup${query}`, JSON_TYPE, body)).status).toBe(202);
    expect(node.started).toEqual([{ pauseScavenge }]);
  });

  test.each([
    ['?repository=/tmp/elsewhere', null],
    ['?to=s3://other', null],
    ['?url=http://169.254.169.254/', null],
    ['?path=/etc', null],
    ['', '{"repository":"s3://other/place"}'],
    ['', '{"pauseScavenge":true,"endpoint":"http://x"}'],
    ['', '{"__proto__":{"repository":"x"},"place":"x"}'],
    ['?pauseScavenge=yes', null],
    ['?pauseScavenge=true&pauseScavenge=/x', null],
    ['', '{"pauseScavenge":"/x"}'],
    ['', '[]'],
    ['', 'null'],
    ['', '"x"'],
    ['', '{'],
    ['', '\ufeff{'],
  ] as const)('%s %s is 400', async (query, body) => {
    const { send, node } = await world();
    expect((await send('POST', `/admin/backup${query}`, JSON_TYPE, body)).status).toBe(400);
    expect(node.started).toEqual([]);
  });

  test('a body of another type is 415: a form of any page could send it', async () => {
    const { send, node } = await world();
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
      expect((await send('POST', '/admin/backup', { 'content-type': type }, '{"pauseScavenge":true}')).status).toBe(
        415,
      );
    expect(node.started).toEqual([]);
  });

  test('a long body is 413', async () => {
    const { send } = await world();
    expect((await send('POST', '/admin/backup', JSON_TYPE, `{"pauseScavenge":${' '.repeat(2_000)}true}`)).status).toBe(
      413,
    );
  });

  test.each([
    ['backup_off', 409],
    ['scavenge_in_progress', 409],
    ['storage_unreachable', 503],
    ['repository_not_found', 503],
    ['repository_key', 500],
    ['store_closed', 503],
  ] as const)('%s is %i', async (code, status) => {
    const { send, get, node } = await world();
    node.error = new SkuaError(code, 'Because.');
    for (const reply of [await send('POST', '/admin/backup'), await get('/admin/backups')])
      expect([reply.status, reply.json()]).toMatchObject([status, { code, detail: 'Because.' }]);
    if (status === 503) expect(Number((await get('/admin/backups')).headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test.each(['storage_denied', 'bucket_not_found', 'wrong_region', 'clock_skewed'] as const)(
    '%s: the repository is out of reach, for a minute at least',
    async (code) => {
      const { get, node } = await world();
      node.error = new SkuaError(code, 'Because.');
      const reply = await get('/admin/backups');
      expect([reply.status, reply.headers.get('retry-after'), reply.json()]).toMatchObject([
        503,
        '60',
        { code: 'repository_unreachable', detail: expect.stringContaining('Because.') },
      ]);
    },
  );

  test('are unknown where none are made', async () => {
    const { send } = harness();
    for (const path of ['/admin/backup', '/admin/backup/hold', '/admin/backups']) {
      const reply = await send('POST', path);
      expect([reply.status, reply.headers.get('access-control-allow-methods')]).toEqual([404, null]);
    }
  });
});
