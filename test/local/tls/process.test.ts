import * as https from 'node:https';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { issueNode, issueRoot } from '../../support/certificates.ts';
import { skua } from '../spawn.ts';
import type { Spawned } from '../spawn.ts';
import { Files } from './files.ts';

/** The process of a node, with what it takes to talk to it. */
async function started(
  words: readonly string[],
  ca: string,
): Promise<{ node: Spawned; serial(agent?: https.Agent): Promise<string> }> {
  const node = skua(['start', '--mem-db', '--node-port', '0', ...words]);
  onTestFinished(async () => {
    node.child.kill('SIGTERM');
    await node.ended;
  });
  const [, url] = await node.seen(/listening on (https:\/\/\S+)\n/);
  const serial = (agent: https.Agent | false = false) =>
    new Promise<string>((resolve, reject) => {
      https
        .get(`${url}/health/live`, { ca, agent }, (reply) => {
          const socket = reply.socket as import('node:tls').TLSSocket;
          const { serialNumber } = socket.getPeerCertificate();
          reply.resume().on('end', () => resolve(serialNumber));
        })
        .on('error', reject);
    });
  return { node, serial: (agent) => serial(agent ?? false) };
}

test('SIGHUP takes up new certificates; old connections go on; a broken key changes nothing', async () => {
  const root = await issueRoot();
  const [first, second] = [await issueNode(root), await issueNode(root)];
  const serials = [first, second].map(({ parsed }) => parsed.serialNumber.toUpperCase());
  const files = await Files.of({ 'node.crt': first.cert, 'node.key': first.key, 'roots/ca.crt': root.cert });
  const { node, serial } = await started(
    [
      '--certificate-file',
      files.path('node.crt'),
      '--certificate-private-key-file',
      files.path('node.key'),
      '--trusted-root-certificates-path',
      files.path('roots'),
    ],
    root.cert,
  );
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca: root.cert });
  onTestFinished(() => agent.destroy());
  const free = once(agent, 'free');
  expect(await serial(agent)).toBe(serials[0]);
  await free;

  await files.write('node.key', 'broken');
  node.child.kill('SIGHUP');
  await node.seen(/the configuration was not reloaded/);
  expect(node.logged().find(({ msg }) => String(msg).startsWith('the configuration was not reloaded'))).toMatchObject({
    level: 'error',
    file: files.path('node.key'),
    reason: expect.stringContaining('no private key'),
  });
  expect(await serial()).toBe(serials[0]);

  await files.write('node.crt', second.cert);
  await files.write('node.key', second.key);
  node.child.kill('SIGHUP');
  await node.seen(/the configuration was reloaded/);
  expect([await serial(agent), await serial()]).toEqual(serials);
});

test('a node that can not load its certificate does not start, and says which file and why', async () => {
  const root = await issueRoot();
  const files = await Files.of({
    'node.crt': (await issueNode(root)).cert,
    'node.key': 'broken',
    'roots/ca.crt': root.cert,
  });
  const { code, err } = await skua([
    'start',
    '--mem-db',
    '--node-port',
    '0',
    '--certificate-file',
    files.path('node.crt'),
    '--certificate-private-key-file',
    files.path('node.key'),
    '--trusted-root-certificates-path',
    files.path('roots'),
  ]).ended;
  expect(code).toBe(1);
  expect(err).toContain(`${files.path('node.key')}: The file has no private key in PEM.`);
});
