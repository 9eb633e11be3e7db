import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ROOT, Spawned } from '../local/spawn.ts';

/** A program that ends without having stopped its nodes. */
const program = (rest: string) => `
import { startTestNode } from '${new URL('../../local/testing/index.ts', import.meta.url).href}';
const plain = await startTestNode({ seed: { a: [{ type: 'x' }] } });
const secure = await startTestNode({ tls: true });
const filed = await startTestNode({ storage: 'folder' });
console.log('folder ' + filed.folder + '.');
${rest}
`;

test('nodes that are not stopped do not keep a process alive, though connections are open, and leave no folder', async () => {
  // Keeps its connection, as fetch does; and a subscription that waits.
  const { code, out } = await new Spawned(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      program(`
await (await fetch(plain.url + '/streams/a', { headers: { accept: 'application/json' } })).text();
void (async () => { for await (const _ of filed.store.subscribe()) {} })();
console.log('done');
`),
    ],
    {},
    { cwd: ROOT },
  ).ended;
  expect(out).toMatch(/done/);
  expect(code).toBe(0);
  const [, folder] = /folder (.*)\./.exec(out)!;
  expect(folder).toMatch(/skua-test-node-/);
  expect(existsSync(folder!)).toBe(false);
});

test('what somebody waits for keeps the process alive until it is done', async () => {
  const { code, out } = await new Spawned(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      program(`
await filed.store.delete('a').catch(() => {});
await plain.store.delete('a', { hard: true });
console.log('removed', (await plain.scavenge()).removed.filter(({ stream }) => stream === 'a').length);
await plain.reset();
await plain.advanceTime({ days: 1 });
await Promise.all([plain, secure, filed].map((node) => node.stop()));
console.log('stopped');
`),
    ],
    {},
    { cwd: ROOT },
  ).ended;
  expect(out).toMatch(/removed 1\nstopped\n$/);
  expect(code).toBe(0);
});

test('nodes add nothing that listens to signals, and take their listener for the end away again', async () => {
  const { code, out } = await new Spawned(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `
const listeners = () => ['SIGINT', 'SIGTERM', 'SIGHUP', 'uncaughtException', 'unhandledRejection', 'exit'].map((name) => process.listenerCount(name)).join();
const before = listeners();
${program(`
console.log('running', listeners() === before.replace(/0$/, '1'));
await Promise.all([plain, secure, filed].map((node) => node.stop()));
console.log('stopped', listeners() === before);
`)}`,
    ],
    {},
    { cwd: ROOT },
  ).ended;
  expect(out).toMatch(/running true\nstopped true\n$/);
  expect(code).toBe(0);
});
