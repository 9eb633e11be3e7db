import { describe, expect, test } from 'vitest';
import type { StatsTree } from '../../../handlers/http/node-control.ts';
import { FakeNode } from '../../support/fake-node.ts';
import { harness } from '../harness.ts';

const TREE: StatsTree = {
  proc: { startTime: '2031-04-02T09:00:00Z', id: 4711, cpu: 1.5, diskIo: { readBytes: 10 } },
  sys: { freeMem: 1024, drive: { '/var/lib': { usage: '40%', usedBytes: 4000 } } },
};

function setUp() {
  const node = new FakeNode();
  node.tree = TREE;
  return harness({ node });
}

describe('/stats', () => {
  test('is a tree, that may be kept for a second', async () => {
    const reply = await setUp().get('/stats');
    expect(reply.status).toBe(200);
    expect(reply.json()).toEqual(TREE);
    expect(reply.headers.get('cache-control')).toBe('max-age=1, private');
    expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(reply.headers.get('access-control-allow-methods')).toBe('GET, OPTIONS');
    expect((await setUp().get('/stats?group=TRUE&metadata=False')).json()).toEqual(TREE);
  });

  test('is flat without grouping', async () => {
    expect((await setUp().get('/stats?group=false')).json()).toEqual({
      'proc-startTime': '2031-04-02T09:00:00Z',
      'proc-id': 4711,
      'proc-cpu': 1.5,
      'proc-diskIo-readBytes': 10,
      'sys-freeMem': 1024,
      'sys-drive-/var/lib-usage': '40%',
      'sys-drive-/var/lib-usedBytes': 4000,
    });
  });

  test('describes its values', async () => {
    const { proc, sys } = (await setUp().get('/stats?metadata=true')).json();
    expect(proc.diskIo.readBytes).toEqual({
      value: 10,
      category: 'Process',
      title: 'disk io, read bytes',
      drawChart: true,
    });
    expect(proc.id).toEqual({ value: 4711, category: 'Process', title: 'id', drawChart: false });
    expect(sys.drive['/var/lib'].usage).toMatchObject({ value: '40%', category: 'System', drawChart: false });
    const flat = (await setUp().get('/stats?metadata=true&group=false')).json();
    expect(flat['proc-diskIo-readBytes']).toEqual(proc.diskIo.readBytes);
    expect((await setUp().get('/stats/proc/diskIo?metadata=true')).json()).toEqual({
      readBytes: proc.diskIo.readBytes,
    });
  });

  test.each([
    ['/stats/proc', TREE['proc']],
    ['/stats/proc/diskIo', { readBytes: 10 }],
    ['/stats/sys/drive/%2Fvar%2Flib', { usage: '40%', usedBytes: 4000 }],
    ['/stats/replication', []],
    ['/stats/tcp', []],
  ])('%s is a branch', async (path, branch) => {
    expect((await setUp().get(path)).json()).toEqual(branch);
  });

  test.each([
    '/stats/nothing',
    '/stats/proc/cpu',
    '/stats/proc/diskIo/readBytes',
    '/stats/proc/nothing/deep',
    '/stats/constructor',
    '/stats/proc/__proto__',
    '/stats//proc',
    `/stats/${'a/'.repeat(2_000)}a`,
  ])('%s is not there', async (path) => {
    expect((await setUp().get(path)).status).toBe(404);
  });

  test('says what is wrong with a request', async () => {
    const { get } = setUp();
    const grouped = await get('/stats/proc?group=false');
    expect([grouped.status, grouped.json().detail]).toEqual([
      400,
      'Dynamic stats selection works only with grouping enabled',
    ]);
    for (const path of ['/stats?group=maybe', '/stats?metadata=1', '/stats/%E0%A4%A'])
      expect((await get(path)).status, path).toBe(400);
  });

  test('can be switched off', async () => {
    const { get } = harness({ node: new FakeNode(), options: { disableStatsOnHttp: true } });
    for (const path of ['/stats', '/stats/proc', '/stats/tcp', '/metrics'])
      expect((await get(path)).status, path).toBe(404);
  });
});
