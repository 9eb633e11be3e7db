import { describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../../core/ports/audit.ts';
import { ERASURE_REPORT, fakeErasure, PROOF_ID } from '../../support/fake-erasure.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { harness } from '../harness.ts';
import { AS, secured } from '../secured.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

function world(more: Parameters<typeof fakeErasure>[1] = {}) {
  const h = harness({ erasure: fakeErasure(new ManualClock(Date.UTC(2031, 3, 2)), more) });
  return { ...h, start: (body: unknown) => h.send('POST', '/admin/erasure', JSON_TYPE, JSON.stringify(body)) };
}

describe('proofs of erasure', () => {
  test('begin, are looked at, and end with a report to keep', async () => {
    const { start, get } = world({ report: ERASURE_REPORT });
    const reply = await start({ stream: 'orders-1' });
    expect([reply.status, reply.json()]).toEqual([202, { proofId: PROOF_ID }]);
    const report = {
      isErased: false,
      isStreamKnown: true,
      files: 3,
      bytes: 4_096,
      traces: 1,
      residues: 1,
      redacted: 0,
    };
    const proof = {
      proofId: PROOF_ID,
      state: 'done',
      stream: 'orders-1',
      startedAt: '2031-04-02T00:00:00Z',
      endedAt: '2031-04-02T00:00:00Z',
      bytesDone: 5,
      bytesTotal: 10,
      elapsedSeconds: 0,
      error: null,
    };
    expect((await get(`/admin/erasure/${PROOF_ID}`)).json()).toEqual({
      ...proof,
      events: [],
      report: { ...report, findings: ERASURE_REPORT.findings, hidden: 0 },
    });
    expect((await get('/admin/erasure')).json()).toEqual({ proofs: [{ ...proof, events: 0, report }] });
  });

  test('prove nothing of a stream that nobody knows, and say nothing of streams where ids are looked for', async () => {
    const { start, get } = world({ report: { ...ERASURE_REPORT, traces: 0, residues: 0, findings: [] } });
    await start({ stream: 'misspelt' });
    expect((await get(`/admin/erasure/${PROOF_ID}`)).json().report).toMatchObject({
      isErased: true,
      isStreamKnown: false,
    });
    await start({ events: [PROOF_ID] });
    expect((await get('/admin/erasure')).json().proofs[0]).toMatchObject({
      stream: null,
      events: 1,
      report: { isStreamKnown: null },
    });
  });

  test('are ended, and run one at a time', async () => {
    const { start, get, send } = world();
    await start({ stream: 'orders-1' });
    expect((await start({ stream: 'orders-2' })).json()).toMatchObject({ code: 'task_running' });
    expect((await get(`/admin/erasure/${PROOF_ID}`)).json()).toMatchObject({
      state: 'running',
      endedAt: null,
      report: null,
    });
    expect((await send('DELETE', `/admin/erasure/${PROOF_ID}`)).json()).toEqual({ proofId: PROOF_ID });
    expect((await send('DELETE', `/admin/erasure/${PROOF_ID}`)).json()).toMatchObject({ code: 'task_not_found' });
    expect((await get('/admin/erasure')).json().proofs).toMatchObject([{ state: 'aborted' }]);
    expect((await get('/admin/erasure/nothing')).status).toBe(404);
  });

  test.each<[unknown, string]>([
    [{}, 'bad_option'],
    [{ stream: '' }, 'bad_option'],
    [{ stream: 1 }, 'bad_request'],
    [{ events: 'x' }, 'bad_request'],
    [{ events: [1] }, 'bad_request'],
    [{ events: ['x'] }, 'bad_option'],
    [[], 'bad_json'],
    [null, 'bad_json'],
    ['orders', 'bad_json'],
    [{ stream: '\ud800' }, 'invalid_stream_name'],
  ])('are refused for %j', async (body, code) => {
    const { start, get } = world();
    expect((await start(body)).json()).toMatchObject({ code });
    expect((await get('/admin/erasure')).json()).toEqual({ proofs: [] });
  });

  test('are for operators, told to the audit, and absent where there are no files', async () => {
    const entries: AuditEntry[] = [];
    const { send, get } = secured({
      erasure: fakeErasure(new ManualClock()),
      audit: {
        record: (entry) => {
          entries.push(entry);
        },
      },
    });
    expect((await send('POST', '/admin/erasure', { ...AS.plain, ...JSON_TYPE }, '{"stream":"a"}')).status).toBe(403);
    expect((await send('POST', '/admin/erasure', { ...AS.ops, ...JSON_TYPE }, '{"stream":"a"}')).status).toBe(202);
    expect((await get('/admin/erasure', undefined, AS.plain)).status).toBe(403);
    expect(
      entries
        .filter(({ action }) => action === 'erasure.prove')
        .map(({ outcome, user, target }) => [outcome, user, target]),
    ).toEqual([
      ['refused', 'kim', null],
      ['success', 'olga', 'a'],
    ]);
    expect((await harness().get('/admin/erasure')).status).toBe(404);
    expect((await world().send('POST', '/admin/erasure', JSON_TYPE, ' '.repeat(70_000))).status).toBe(413);
  });
});
