import { cp, mkdir, readdir, readFile, symlink } from 'node:fs/promises';
import * as path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ok, packed } from '../local/packed.ts';
import type { Packed, ShellOptions } from '../local/packed.ts';
import { ROOT } from '../local/spawn.ts';
import type { Spawned } from '../local/spawn.ts';

/** The clinic as a project of a user: beside the installed package, run by its own scripts and the text of its page. */

const CLINIC = path.join(ROOT, 'test/examples/clinic');
/** Of this repository's own packages, linked: nothing is fetched. */
const LINKED = ['@kurrent/kurrentdb-client', '@types/node', 'typescript', 'vitest', '.bin/tsc', '.bin/vitest'];
/** Variables by which the runner of these tests would be taken for that of the project. */
const RUNNER = /^(?:VITEST|TEST|NODE_ENV|NODE_OPTIONS|NODE_V8_COVERAGE|DEV|PROD|MODE|SSR|BASE_URL)/;

/** No test of the project fails for a machine that is slow. */
const PATIENCE = '--test-timeout=600000 --hook-timeout=600000 --expect.poll.timeout=300000';

let all: Packed;
let project: string;
const running = new Set<Spawned>();

beforeAll(async () => {
  all = await packed();
  project = path.join(all.installed, 'clinic');
  await cp(CLINIC, project, { recursive: true });
  for (const name of LINKED) {
    const at = path.join(all.installed, 'node_modules', name);
    await mkdir(path.dirname(at), { recursive: true });
    await symlink(path.join(ROOT, 'node_modules', name), at);
  }
});

afterAll(async () => {
  for (const server of running) await server.end();
  await all.remove();
});

function shell(line: string, options: Partial<ShellOptions> = {}): Spawned {
  const runner = Object.keys(process.env).filter((name) => RUNNER.test(name));
  const env = { ...Object.fromEntries(runner.map((name) => [name, undefined])), ...options.env };
  return all.shell(line, { cwd: project, ...options, env });
}

/** A script that goes on until it is ended, and the address that it listens on. */
async function serve(line: string, env: Record<string, string>): Promise<readonly [server: Spawned, url: string]> {
  const server = shell(line, { env, isServer: true });
  running.add(server);
  void server.ended.finally(() => running.delete(server));
  return [server, (await server.seen(/listening on (http:\S+)/))[1]!];
}

async function bytesOf(folder: string): Promise<string> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const texts = files.map((file) => readFile(path.join(file.parentPath, file.name), 'latin1'));
  return (await Promise.all(texts)).join('\n');
}

test('its tests are its own, where the folder lies in a checkout', async () => {
  const vitest = path.join(ROOT, 'node_modules/vitest/vitest.mjs');
  const { out } = await ok(shell(`node '${vitest}' list --filesOnly`, { cwd: CLINIC }).ended);
  expect(out.trim().split('\n').toSorted()).toEqual(['clinic.spec.ts', 'day.spec.ts']);
});

test('it depends on the versions that are tested here', async () => {
  const packageOf = async (folder: string) =>
    JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')) as Record<string, Record<string, string>>;
  const [root, { engines, dependencies, devDependencies }] = [await packageOf(ROOT), await packageOf(CLINIC)];
  expect(engines).toEqual(root['engines']);
  const skua = `file:../../../skua-${String(root['version'])}.tgz`;
  expect({ ...root['devDependencies'], skua }).toMatchObject({ ...dependencies, ...devDependencies });
});

test('its types and its own tests pass at the installed package', async () => {
  const { out } = await ok(shell(`npm test -- ${PATIENCE}`).ended);
  expect(out).toMatch(/Test Files +2 passed \(2\)/);
});

test('it is run by its page, killed, started again, and erases a patient', async () => {
  const [node, nodeUrl] = await serve('npm run node', { SERVER_NODE_PORT: '0' });
  const settings = { CONNECTION: `kurrentdb://${new URL(nodeUrl).host}?tls=false`, PORT: '0' };
  let [clinic, url] = await serve('npm start', settings);

  const page = await readFile(path.join(CLINIC, 'README.md'), 'utf8');
  const blocks = [...page.matchAll(/^```sh\n([^]*?)^```/gm)].map(([, block]) => block!.trim().split('\n'));
  const walk = async (block: readonly string[]) => {
    let out = '';
    for (const line of block) {
      if (line.startsWith('# ')) expect(out).toContain(line.slice(2));
      else {
        const command = line.replace('http://127.0.0.1:8080', url).replace('http://127.0.0.1:2113', nodeUrl);
        // The read model follows in a moment.
        const isRead = line.startsWith('curl http');
        do ({ out } = await ok(shell(command).ended));
        while (isRead && out === '[]\n');
      }
    }
  };
  const [book, report, erase, ...others] = blocks as [string[], string[], string[]];
  expect(others).toEqual([]);
  await walk(book);
  await walk(report);

  // While the application is dead, the lab reports, and another program books.
  process.kill(-clinic.child.pid!, 'SIGKILL');
  await clinic.ended;
  await walk(report);
  const booked = await fetch(`${nodeUrl}/streams/day-2030-01-07`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'es-eventtype': 'AppointmentBooked',
      'es-eventid': '3e2c9a64-7d1b-4f0a-9c55-1b8a6d2f4e70',
    },
    body: JSON.stringify({ time: '08:00', patient: '7' }),
  });
  expect(booked.status).toBe(201);
  [clinic, url] = await serve('npm start', settings);
  await expect
    .poll(async () => (await fetch(`${url}/days/2030-01-07`)).json())
    .toEqual([
      { time: '08:00', patient: '7', name: 'Ann' },
      { time: '09:30', patient: '7', name: 'Ann' },
    ]);
  const report7 = { patient: '7', finding: 'all is well' };
  expect(await (await fetch(`${url}/patients/7`)).json()).toEqual({
    name: 'Ann',
    phone: '555 0100',
    reports: [report7, report7],
  });

  const data = path.join(project, 'data');
  for (const personal of ['555 0100', 'all is well']) expect(await bytesOf(data)).toContain(personal);
  await walk(erase);
  for (const personal of ['555 0100', 'all is well', '"Ann"'])
    expect((await bytesOf(data)).includes(personal), personal).toBe(false);
  await expect
    .poll(async () => (await fetch(`${url}/days/2030-01-07`)).json())
    .toMatchObject([{ name: null }, { name: null }]);
  expect(await readFile(path.join(project, 'agenda.db'), 'latin1')).not.toContain('Ann');

  for (const server of [clinic, node]) expect((await server.end()).err).not.toContain('The agenda is behind');
});
