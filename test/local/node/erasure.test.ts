import { afterEach, beforeEach, expect, test } from 'vitest';
import { startedIn, temporaryFolder } from '../backup/node-kit.ts';
import type { Started } from '../backup/node-kit.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let started: Started;

beforeEach(async () => {
  folder = await temporaryFolder();
  started = await startedIn(folder.folder);
});
afterEach(async () => {
  await started.node.stop();
  await folder.remove();
});

test('a running node searches its own files in a thread, keeps its lock, and stops in good order while it searches', async () => {
  await started.append('orders', 20);
  const begin = async (stream: string): Promise<string> => {
    const reply = await started.ask('POST', '/admin/erasure', {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ stream }),
    });
    expect(reply.status).toBe(202);
    return ((await reply.json()) as { proofId: string }).proofId;
  };
  const id = await begin('orders');
  let proof;
  do proof = await started.json('GET', `/admin/erasure/${id}`);
  while (proof.state === 'running');
  expect(proof).toMatchObject({ state: 'done', error: null, report: { isErased: false, isStreamKnown: true } });
  expect(proof.report.findings.every(({ file }: { readonly file: string }) => !file.startsWith('skua.lock'))).toBe(
    true,
  );
  expect(proof.report.bytes).toBe(proof.bytesDone);
  await expect(startedIn(folder.folder)).rejects.toMatchObject({ code: 'directory_locked' });
  await begin('others');
});
