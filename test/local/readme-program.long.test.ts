import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ROOT, startedNode } from './spawn.ts';

/** The program of the README, as it stands there, with the client that it names. */
test('the program of "From your code" runs, and says what it did', async () => {
  const [, section] = readFileSync(`${ROOT}/README.md`, 'utf8').split('## From your code');
  const [, program] = /```js\n([^]*?)\n```/.exec(section!)!;
  const folder = mkdtempSync(path.join(tmpdir(), 'skua-readme-'));
  const node = await startedNode(['--insecure', '--mem-db']);
  try {
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
    writeFileSync(path.join(folder, 'orders.mjs'), program!);
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['orders.mjs'], {
      cwd: folder,
      timeout: 600_000,
      env: { ...process.env, SKUA: `kurrentdb://${new URL(node.url).host}?tls=false` },
    });
    expect([stdout, stderr]).toEqual([
      '0: order-placed {"pieces":2}\n1: order-paid {"euros":30}\npacked order-placed\npacked order-paid\n',
      '',
    ]);
    // What was written over gRPC is read over HTTP.
    const line = await (
      await fetch(`${node.url}/streams/order-1`, { headers: { accept: 'application/x-ndjson' } })
    ).text();
    expect(
      line
        .split('\n')
        .filter(Boolean)
        .map((each) => (JSON.parse(each) as { eventType: string }).eventType),
    ).toEqual(['order-placed', 'order-paid']);
  } finally {
    await node.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
