import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { TOMBSTONE } from '../../../core/log/format/records.ts';
import type { DryRunReport, Explanation } from '../../../core/scavenge/api.ts';
import { ATOM, harness, linksOf } from '../harness.ts';

/**
 * Scavenging over HTTP; the numbers are rows 132 to 142 of the tables of scavenging
 * (test/scavenge/tables-coverage.test.ts).
 */

const PATH = '/admin/scavenge';
const FIRST = '00000000-0000-4000-8000-000000000001';
const SECOND = '00000000-0000-4000-8000-000000000002';
const NONE = '00000000-0000-0000-0000-000000000000';
const THREADS = 'threads must be a 1 or above';
const THROTTLE = 'throttlePercent must be between 1 and 100 inclusive';
const MULTI = 'throttlePercent must be 100 for a multi-threaded scavenge';

describe('starting', () => {
  test.each([
    ['132', 'threads=0', THREADS],
    ['132', 'threads=x', THREADS],
    ['132', 'threads=', THREADS],
    ['132', 'threads=4294967297', THREADS],
    ['133', 'throttlePercent=0', THROTTLE],
    ['133', 'throttlePercent=101', THROTTLE],
    ['133', 'throttlePercent=x', THROTTLE],
    ['133', 'throttlePercent=1.5', THROTTLE],
    ['134', 'throttlePercent=50&threads=2', MULTI],
    ['136', 'threshold=x', 'threshold must be an integer'],
    ['136', 'threshold=-2147483649', 'threshold must be an integer'],
    ['137', 'syncOnly=1', 'syncOnly must be a boolean'],
    ['137', 'syncOnly=', 'syncOnly must be a boolean'],
    ['', 'startAfresh=1', 'startAfresh must be a boolean'],
    [
      '',
      'startAfresh=true&syncOnly=true',
      'startAfresh writes a scavenge point and syncOnly uses an existing one: leave one of them out',
    ],
    [
      '',
      `startAfresh=true&clusterScavengeId=${FIRST}&attempt=1`,
      'A cluster resumes an unfinished scavenge: leave out startAfresh, or clusterScavengeId and attempt',
    ],
    ['', 'startFromChunk=-1', 'startFromChunk must be a positive integer'],
    ['', 'dryRun=yes', 'dryRun must be a boolean'],
    // In the order of the table, whatever the order of the parameters.
    [
      '',
      'syncOnly=x&throttlePercent=x&threshold=x&threads=x&startFromChunk=x',
      'startFromChunk must be a positive integer',
    ],
    ['', 'syncOnly=x&throttlePercent=x&threshold=x&threads=x', THREADS],
    ['', 'syncOnly=x&throttlePercent=x&threshold=x', 'threshold must be an integer'],
    ['', 'syncOnly=x&throttlePercent=x', THROTTLE],
    ['', 'syncOnly=x&throttlePercent=99&threads=2', MULTI],
  ])('%s ?%s is refused', async (_, query, detail) => {
    const h = harness();
    const reply = await h.send('POST', `${PATH}?${query}`);
    expect([reply.status, reply.headers.get('content-type')]).toEqual([400, 'application/problem+json; charset=utf-8']);
    expect(reply.json()).toMatchObject({ code: 'bad_request', title: 'Bad Request', detail });
    expect(h.scavenger.started).toEqual([]);
  });

  test.each([
    ['', '', {}],
    ['135', 'throttlePercent=100&threads=2', { throttlePercent: 100, threads: 2 }],
    ['136', 'threshold=-5', { threshold: -5 }],
    ['137', 'syncOnly=TRUE', { syncOnly: true }],
    ['137', 'syncOnly=False', { syncOnly: false }],
    ['', 'startAfresh=True&syncOnly=false', { startAfresh: true, syncOnly: false }],
    ['', 'throttlePercent=50&threads=1', { throttlePercent: 50, threads: 1 }],
    ['', 'startFromChunk=7&threads=9&unknown=x', { threads: 9 }],
  ])('%s ?%s is accepted', async (_, query, options) => {
    const h = harness();
    const reply = await h.send('POST', `${PATH}?${query}`);
    expect(reply).toMatchObject({ status: 200, reason: 'OK', text: `{\n  "scavengeId": "${FIRST}"\n}` });
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(h.scavenger.started).toEqual([{ options, isDry: false }]);
  });

  test('138: two in a row; validation comes before the check for a running one', async () => {
    const h = harness();
    expect((await h.send('POST', PATH)).status).toBe(200);
    const second = await h.send('POST', PATH);
    expect(second.status).toBe(409);
    expect(second.json()).toMatchObject({
      code: 'scavenge_in_progress',
      title: 'Conflict',
      detail: 'Scavenge is already running',
      scavengeId: FIRST,
      hint: expect.stringContaining('DELETE'),
    });
    expect((await h.send('POST', `${PATH}?threads=0`)).status).toBe(400);
    expect((await h.send('POST', `${PATH}?dryRun=true`)).json()).toMatchObject({
      code: 'scavenge_in_progress',
      scavengeId: FIRST,
    });
  });

  test('a body of any kind is ignored', async () => {
    const reply = await harness().send(
      'POST',
      PATH,
      { 'content-type': 'application/x-www-form-urlencoded' },
      'threads=0',
    );
    expect(reply.status).toBe(200);
  });

  test.each([
    ['store_closed', 503],
    ['bad_option', 400],
    ['scavenge_state_invalid', 500],
  ] as const)('a start that fails with %s is %i, with the reason', async (code, status) => {
    const h = harness();
    h.scavenger.start = async () => {
      throw new SkuaError(code, 'Because of this.');
    };
    const reply = await h.send('POST', PATH);
    expect(reply.status).toBe(status);
    expect(reply.json()).toMatchObject({ code, detail: 'Because of this.' });
  });
});

describe('current and last', () => {
  test('139: while running and idle', async () => {
    const h = harness();
    expect((await h.get(`${PATH}/current`)).text).toBe('{\n  "scavengeId": "",\n  "scavengeLink": ""\n}');
    await h.send('POST', PATH);
    expect((await h.get(`${PATH}/current`)).json()).toEqual({
      scavengeId: FIRST,
      scavengeLink: `/admin/scavenge/${FIRST}`,
    });
    h.scavenger.end('Success');
    expect((await h.get(`${PATH}/current`)).json()).toEqual({ scavengeId: '', scavengeLink: '' });
  });

  test('last: unknown, in progress, and each result', async () => {
    const h = harness();
    expect((await h.get(`${PATH}/last`)).json()).toEqual({
      scavengeId: NONE,
      scavengeLink: '',
      scavengeResult: 'Unknown',
    });
    await h.send('POST', PATH);
    expect((await h.get(`${PATH}/last`)).json()).toEqual({
      scavengeId: FIRST,
      scavengeLink: `/admin/scavenge/${FIRST}`,
      scavengeResult: 'InProgress',
    });
    h.scavenger.end('Success');
    expect((await h.get(`${PATH}/last`)).json()).toMatchObject({ scavengeId: FIRST, scavengeResult: 'Success' });
    await h.send('POST', PATH);
    h.scavenger.end('Errored', 'Error while scavenging DB: disk full.');
    expect((await h.get(`${PATH}/last`)).json()).toMatchObject({
      scavengeId: SECOND,
      scavengeResult: 'Errored',
      error: 'Error while scavenging DB: disk full.',
    });
  });

  test('on object storage: until when traces remain of what was removed, or that none do', async () => {
    const h = harness();
    const last = { scavengeId: FIRST, result: 'Success', error: null } as const;
    h.scavenger.last = () => ({ ...last, traces: { untilMs: Date.UTC(2026, 10, 22, 12), goneMs: null } });
    expect((await h.get(`${PATH}/last`)).json()).toMatchObject({
      scavengeId: FIRST,
      tracesUntil: '2026-11-22T12:00:00Z',
    });
    expect((await h.get(`${PATH}/current`)).json()).toEqual({
      scavengeId: '',
      scavengeLink: '',
      tracesUntil: '2026-11-22T12:00:00Z',
    });
    h.scavenger.last = () => ({ ...last, traces: { untilMs: 0, goneMs: Date.UTC(2026, 10, 22, 11) } });
    expect((await h.get(`${PATH}/last`)).json()).toMatchObject({ tracesGone: '2026-11-22T11:00:00Z' });
  });
});

describe('stopping', () => {
  test('140: with another id, 404, and the run goes on', async () => {
    const h = harness();
    expect((await h.send('DELETE', `${PATH}/current`)).status).toBe(404);
    await h.send('POST', PATH);
    const reply = await h.send('DELETE', `${PATH}/${SECOND}`);
    expect(reply.status).toBe(404);
    expect(reply.json()).toMatchObject({ code: 'scavenge_not_found', detail: 'Scavenge Id does not exist' });
    expect(h.scavenger.current()).toBe(FIRST);
  });

  test('141: current, then a start with a new id', async () => {
    const h = harness();
    await h.send('POST', PATH);
    expect(await h.send('DELETE', `${PATH}/current`)).toMatchObject({ status: 200, text: `"${FIRST}"` });
    expect((await h.get(`${PATH}/last`)).json()).toMatchObject({ scavengeResult: 'Stopped' });
    expect((await h.send('POST', PATH)).json()).toEqual({ scavengeId: SECOND });
    expect(await h.send('DELETE', `${PATH}/${SECOND}`)).toMatchObject({ status: 200, text: `"${SECOND}"` });
  });

  test('is answered only when the run has ended, for all who asked', async () => {
    const h = harness();
    h.scavenger.stopsAtOnce = false;
    await h.send('POST', PATH);
    let answered = 0;
    const replies = ['current', FIRST].map(async (id) => {
      const reply = await h.send('DELETE', `${PATH}/${id}`);
      answered++;
      return reply.status;
    });
    await h.get(`${PATH}/current`);
    expect(answered).toBe(0);
    h.scavenger.end('Stopped');
    expect(await Promise.all(replies)).toEqual([200, 200]);
  });
});

test('what goes, or waits to go, to an older point says so behind the recorded members', async () => {
  const h = harness();
  const point = { position: 900, eventNumber: 1, effectiveNowMs: Date.UTC(2031, 3, 2), threshold: 3 };
  const older = {
    why: 'unfinished',
    position: 900,
    eventNumber: 1,
    effectiveNow: '2031-04-02T00:00:00Z',
    threshold: 3,
  };
  h.scavenger.waitingNow = { why: 'unfinished', point };
  expect((await h.get(`${PATH}/current`)).json()).toEqual({ scavengeId: '', scavengeLink: '', waiting: older });
  expect((await h.get(`${PATH}/last`)).json()).toEqual({
    scavengeId: NONE,
    scavengeLink: '',
    scavengeResult: 'Unknown',
    waiting: older,
  });
  expect((await h.send('POST', PATH)).json()).toEqual({ scavengeId: FIRST, olderPoint: older });
  h.scavenger.progressNow = {
    phase: 'Cleaning',
    chunksDone: 1,
    chunksTotal: 1,
    bytesDone: 0,
    bytesTotal: 0,
    bytesReclaimed: 0,
    startedAtMs: 0,
    elapsedSeconds: 1,
    remainingSeconds: null,
    phaseShare: 0.5,
    olderPoint: { why: 'unfinished', point },
  };
  expect((await h.get(`${PATH}/progress`)).json()).toMatchObject({ phaseShare: 0.5, olderPoint: older });
  const scavengeLink = `${PATH}/${FIRST}`;
  expect((await h.get(`${PATH}/current`)).json()).toEqual({ scavengeId: FIRST, scavengeLink, olderPoint: older });
  h.scavenger.waitingNow = null;
  h.scavenger.end('Success');
  expect((await h.get(`${PATH}/last`)).json()).toEqual({
    scavengeId: FIRST,
    scavengeLink,
    scavengeResult: 'Success',
    olderPoint: older,
  });
  expect((await h.get(`${PATH}/current`)).json()).toEqual({ scavengeId: '', scavengeLink: '' });
  h.scavenger.waitingNow = { why: 'unfinished', point };
  expect((await h.send('POST', `${PATH}?startAfresh=true`)).json()).toEqual({ scavengeId: SECOND });
  const leaves = [{ from: 0, to: 3, count: 4, bytes: 812, rule: 'tombstone' as const }];
  h.scavenger.explanations.set('s', {
    stream: 's',
    lastEventNumber: 3,
    metadata: null,
    rules: [],
    removed: leaves,
    kept: [],
    ignored: [{ key: '$maxcount', value: '1', why: 'x' }],
    waiting: { why: 'unreached', point, leaves },
  });
  expect((await h.get(`${PATH}/explain/s`)).json()).toEqual({
    stream: 's',
    lastEventNumber: 3,
    metadata: null,
    rules: [],
    removed: leaves,
    kept: [],
    ignored: [{ key: '$maxcount', value: '1', why: 'x' }],
    waiting: { ...older, why: 'unreached', leaves },
  });
  h.scavenger.reports.set(SECOND, {
    scavengeId: SECOND,
    threshold: 0,
    point,
    chunks: [],
    totals: { chunks: 0, records: 0, discardable: 0, redactable: 0, bytes: 0, bytesReclaimable: 0, chunksExecuted: 0 },
    waiting: { why: 'unfinished', point },
  });
  expect((await h.get(`${PATH}/dry-run/${SECOND}`)).json()).toMatchObject({ waiting: older });
});

test('progress: 404 when none runs', async () => {
  const h = harness();
  const none = await h.get(`${PATH}/progress`);
  expect([none.status, none.json().code]).toEqual([404, 'scavenge_not_found']);
  await h.send('POST', PATH);
  h.scavenger.progressNow = {
    phase: 'Chunk execution',
    chunksDone: 1,
    chunksTotal: 4,
    bytesDone: 100,
    bytesTotal: 400,
    bytesReclaimed: -7,
    startedAtMs: Date.UTC(2031, 3, 2, 9, 15, 30, 250),
    elapsedSeconds: 1.5,
    remainingSeconds: null,
  };
  expect((await h.get(`${PATH}/progress`)).json()).toEqual({
    scavengeId: FIRST,
    phase: 'Chunk execution',
    chunksDone: 1,
    chunksTotal: 4,
    bytesDone: 100,
    bytesTotal: 400,
    bytesReclaimed: -7,
    startedAt: '2031-04-02T09:15:30.25Z',
    elapsedSeconds: 1.5,
    remainingSeconds: null,
  });
});

describe('dry run', () => {
  const report: DryRunReport = {
    scavengeId: FIRST,
    threshold: 3,
    point: { position: 900, eventNumber: 1, effectiveNowMs: Date.UTC(2031, 3, 2) + 0.75, threshold: 3 },
    chunks: [
      {
        file: 'chunk-000000.000000',
        start: 0,
        end: 0,
        weight: 4,
        records: 9,
        discardable: 2,
        redactable: 1,
        bytes: 5_000,
        bytesReclaimable: 400,
        wouldExecute: true,
      },
    ],
    totals: {
      chunks: 1,
      records: 9,
      discardable: 2,
      redactable: 1,
      bytes: 5_000,
      bytesReclaimable: 400,
      chunksExecuted: 1,
    },
  };

  test('202 while it runs, then the report', async () => {
    const h = harness();
    expect((await h.send('POST', `${PATH}?dryRun=TRUE&threshold=3`)).json()).toEqual({ scavengeId: FIRST });
    expect(h.scavenger.started).toEqual([{ options: { threshold: 3 }, isDry: true }]);
    const running = await h.get(`${PATH}/dry-run/${FIRST}`);
    expect([running.status, running.reason, running.json()]).toEqual([202, 'Accepted', { scavengeId: FIRST }]);
    h.scavenger.reports.set(FIRST, report);
    const done = await h.get(`${PATH}/dry-run/${FIRST}`);
    expect(done.status).toBe(200);
    expect(done.json()).toEqual({
      scavengeId: FIRST,
      threshold: 3,
      point: { position: 900, eventNumber: 1, effectiveNow: '2031-04-02T00:00:00.00075Z' },
      chunks: report.chunks,
      totals: report.totals,
    });
  });

  test('404 for another id and for one that was stopped; the reason of one that failed', async () => {
    const h = harness();
    expect((await h.get(`${PATH}/dry-run/${FIRST}`)).status).toBe(404);
    h.scavenger.reports.set(FIRST, new SkuaError('aborted', 'Stopped.'));
    const stopped = await h.get(`${PATH}/dry-run/${FIRST}`);
    expect([stopped.status, stopped.json().detail]).toEqual([404, expect.stringContaining('was stopped')]);
    h.scavenger.reports.set(FIRST, new SkuaError('scavenge_failed', 'Found Tombstone in metadata stream $$a.'));
    const failed = await h.get(`${PATH}/dry-run/${FIRST}`);
    expect([failed.status, failed.json().detail]).toEqual([500, 'Found Tombstone in metadata stream $$a.']);
  });
});

describe('explain', () => {
  const explanation = (stream: string): Explanation => ({
    stream,
    lastEventNumber: TOMBSTONE,
    metadata: { $tb: TOMBSTONE, note: 'x', list: [], nested: { a: [1, null] } },
    rules: [
      { rule: '$tb', value: TOMBSTONE },
      { rule: 'tombstone', value: true },
    ],
    removed: [{ from: 0, to: 3, count: 4, bytes: 812, rule: 'tombstone' }],
    kept: [{ from: TOMBSTONE, to: TOMBSTONE, count: 1, why: 'the tombstone' }],
  });

  test.each(['orders', 'a/b c', 'ü/渡 %2F', '$$orders', '$all', 'a?b#c'])('%s', async (stream) => {
    const h = harness();
    h.scavenger.explanations.set(stream, explanation(stream));
    const reply = await h.get(`${PATH}/explain/${encodeURIComponent(stream)}`);
    expect(reply.status).toBe(200);
    expect(JSON.parse(reply.text.replaceAll('9223372036854775807', String(TOMBSTONE)))).toEqual(explanation(stream));
    expect(reply.text).toContain('"lastEventNumber": 9223372036854775807,');
    expect(reply.text).not.toContain(String(TOMBSTONE));
  });

  test('of no stream: 404; of malformed names: 400', async () => {
    const h = harness();
    expect((await h.get(`${PATH}/explain/none`)).json()).toMatchObject({ code: 'stream_not_found' });
    expect((await h.get(`${PATH}/explain/%zz`)).status).toBe(400);
    expect((await h.get(`${PATH}/explain/a/b`)).status).toBe(404);
  });
});

describe('what is sent', () => {
  const TEXT = 'text/plain; charset=utf-8';

  test('plain text when asked for', async () => {
    const h = harness();
    const texts = async (method: string, path: string, accept: string) => {
      const reply = await h.send(method, path, { accept });
      return [reply.headers.get('content-type'), reply.text];
    };
    expect(await texts('POST', PATH, 'text/plain')).toEqual([TEXT, `ScavengeId: ${FIRST}`]);
    expect(await texts('GET', `${PATH}/current`, 'text/*')).toEqual([
      TEXT,
      `ScavengeId: ${FIRST}, ScavengeLink: /admin/scavenge/${FIRST}`,
    ]);
    expect(await texts('GET', `${PATH}/last?format=text`, '')).toEqual([
      TEXT,
      `ScavengeId: ${FIRST}, ScavengeLink: /admin/scavenge/${FIRST}, ScavengeResult: InProgress`,
    ]);
    expect(await texts('DELETE', `${PATH}/current`, 'text/plain, application/json;q=0.5')).toEqual([TEXT, FIRST]);
    expect(await texts('GET', `${PATH}/current`, 'text/plain')).toEqual([TEXT, 'ScavengeId: , ScavengeLink: ']);
  });

  test.each(['*/*', 'application/json', 'application/*', 'text/xml, */*;q=0.1'])('JSON for %s', async (accept) => {
    const reply = await harness().get(`${PATH}/current`, accept);
    expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
  });

  test.each([
    ['POST', PATH, 'application/xml'],
    ['GET', `${PATH}/last`, 'text/html'],
    ['DELETE', `${PATH}/current`, ATOM],
    ['GET', `${PATH}/progress`, 'text/plain'],
    ['GET', `${PATH}/current`, 'text/event-stream'],
  ])('406 for %s %s as %s', async (method, path, accept) => {
    const h = harness();
    expect((await h.send(method, path, { accept })).status).toBe(406);
    expect(h.scavenger.started).toEqual([]);
  });

  test('feeds have no plain text', async () => {
    const h = harness();
    await h.fill('s', 1);
    expect((await h.get('/streams/s', 'text/plain')).status).toBe(406);
    expect((await h.get('/streams/s?format=text')).status).toBe(406);
  });
});

test.each([
  [PATH, 'POST, OPTIONS', ['GET', 'DELETE', 'PUT']],
  [`${PATH}/current`, 'DELETE, GET, OPTIONS', ['POST', 'PUT']],
  [`${PATH}/last`, 'GET, OPTIONS', ['POST', 'DELETE']],
  [`${PATH}/progress`, 'GET, OPTIONS', ['DELETE']],
  [`${PATH}/${FIRST}`, 'DELETE, OPTIONS', ['GET', 'POST']],
  [`${PATH}/dry-run/${FIRST}`, 'GET, OPTIONS', ['POST', 'DELETE']],
  [`${PATH}/explain/a`, 'GET, OPTIONS', ['POST']],
])('%s knows %s', async (path, methods, others) => {
  const h = harness();
  const options = await h.send('OPTIONS', path);
  expect([options.status, options.headers.get('access-control-allow-methods')]).toEqual([200, methods]);
  for (const method of others) {
    const reply = await h.send(method, path);
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, methods]);
  }
});

test.each(['/admin', '/admin/', `${PATH}/`, `${PATH}/current/`, `${PATH}/dry-run/${FIRST}/x`, `${PATH}/a/b`])(
  '%s is 404',
  async (path) => {
    for (const method of ['GET', 'POST', 'DELETE']) expect((await harness().send(method, path)).status).toBe(404);
  },
);

describe('history', () => {
  async function filled() {
    const h = harness();
    await h.fill(`$scavenges-${FIRST}`, { n: 0 }, { n: 1 }, { n: 2 });
    return h;
  }

  test.each(['/streams/$scavenges', '/streams/%24scavenges', '/streams/%24%73cavenges'])(
    '%s/{id}/{event}/{count} reads a run backward',
    async (path) => {
      const h = await filled();
      const reply = await h.get(`${path}/${FIRST}/head/2?embed=body`, 'application/json');
      expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
      const feed = reply.json();
      expect(feed.entries.map((entry: { data: string }) => JSON.parse(entry.data))).toEqual([{ n: 2 }, { n: 1 }]);
      // Its links lead to the run's own stream, where they work.
      const next = await h.get(`${linksOf(feed)['next']}?embed=body`, ATOM);
      expect(next.json().entries.map((entry: { data: string }) => JSON.parse(entry.data))).toEqual([{ n: 0 }]);
      expect((await h.get(`${path}/${FIRST}/1/1`)).json().entries).toHaveLength(1);
    },
  );

  test('numbers and counts are checked, other runs are 404, other streams have no such path', async () => {
    const h = await filled();
    expect((await h.get(`/streams/$scavenges/${FIRST}/x/2`)).status).toBe(400);
    expect((await h.get(`/streams/$scavenges/${FIRST}/head/0`)).status).toBe(400);
    expect((await h.get(`/streams/$scavenges/${SECOND}/head/2`)).status).toBe(404);
    expect((await h.get(`/streams/$scavengesX/${FIRST}/head/2`)).status).toBe(404);
    expect((await h.send('POST', `/streams/$scavenges/${FIRST}/head/2`)).headers.get('allow')).toBe('GET, OPTIONS');
  });

  test('the pages of $scavenges itself work, as do appends to it', async () => {
    const h = harness();
    await h.fill('$scavenges', { n: 0 }, { n: 1 }, { n: 2 });
    const head = await h.get('/streams/$scavenges?embed=body');
    expect([head.status, head.headers.get('access-control-allow-methods')]).toEqual([
      200,
      'POST, DELETE, GET, GET, OPTIONS',
    ]);
    for (const path of ['0/forward/3', 'head/backward/3', '2/3'])
      expect((await h.get(`/streams/$scavenges/${path}`)).json().entries).toHaveLength(3);
    expect((await h.get('/streams/$scavenges/1')).json()).toEqual({ n: 1 });
    expect((await h.get('/streams/$scavenges/metadata')).status).toBe(200);
  });
});
