import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { freePorts } from '../support/free-ports.ts';
import { carryOut } from './containerfile.ts';
import type { Image } from './containerfile.ts';
import { pages, stepsOf } from './guide-blocks.ts';
import { ARCHIVE, archived, isArchived } from './packed.ts';
import { ROOT, Spawned } from './spawn.ts';
import type { Ended } from './spawn.ts';

/**
 * The image, as far as it can be had without a container engine: the steps of the Containerfile are carried out in a
 * folder, and what it says is run there is run, with its variables and nothing else of Node.js on the path.
 */

const ADDRESS = 'http://127.0.0.1:2113';
const CONTAINERFILE = readFileSync(`${ROOT}/infra/packaging/Containerfile`, 'utf8');
/** As builders name architectures. */
const ARCHES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
/** The section of the README that a reader goes through first. */
const FIRST_SECTION = 'Five minutes with curl';
const steps = stepsOf(pages()[0]!).filter(({ section }) => section === FIRST_SECTION);
const hasCurl = spawnSync('curl', ['--version'], { env: { PATH: '/usr/bin:/bin' } }).status === 0;

let folder: string;
let image: Image;
const inImage = (file: string) => path.join(image.root, file);

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'skua-image-')));
  if (!isArchived) return;
  const context = path.join(folder, 'context');
  mkdirSync(path.join(context, 'dist'), { recursive: true });
  copyFileSync(await archived(), path.join(context, 'dist', `${ARCHIVE}.tar.gz`));
  image = await carryOut(CONTAINERFILE, { context, folder, arch: ARCHES[process.arch]! });
});
/** Each test has a volume of its own. */
afterEach(() => {
  if (!isArchived) return;
  for (const name of readdirSync(inImage('/data'))) rmSync(path.join(inImage('/data'), name), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs words in the image, with its variables, and these in place of some. */
function inContainer(
  [program, ...words]: readonly string[],
  env: Readonly<Record<string, string>> = {},
  isServer = false,
): Spawned {
  const nothing = Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined]));
  return new Spawned(
    program!,
    words,
    { ...nothing, PATH: '/usr/bin:/bin', HOME: image.root, ...image.env, ...env },
    { cwd: inImage(image.folder), isGroup: isServer },
  );
}

const node = () => [inImage(image.entrypoint[0]!), ...image.entrypoint.slice(1), ...image.command];
const health = (env: Readonly<Record<string, string>>): Promise<Ended> =>
  inContainer(image.health.map(inImage), env).ended;
/** Tests listen on this machine alone. */
const HERE = { SERVER_NODE_IP: '127.0.0.1', SERVER_DISABLE_TLS: 'true', SERVER_STREAM_EXISTENCE_FILTER_SIZE: '10000' };

describe.skipIf(!isArchived)('the image', () => {
  test('holds the archive, and a folder for data that is for its owner only', () => {
    expect(image.base).toMatch(/^docker\.io\/library\/debian:\d+-slim$/);
    for (const file of [...image.entrypoint, ...image.health])
      expect([file, existsSync(inImage(file))]).toEqual([file, true]);
    expect(image.volumes).toEqual(['/data']);
    expect((statSync(inImage('/data')).mode & 0o777).toString(8)).toBe('700');
    expect(existsSync(inImage('/archives'))).toBe(false);
  });

  test('refuses to listen on all addresses with passwords that are documented', async () => {
    const { code, err } = await inContainer(node(), { SERVER_DISABLE_TLS: 'true', SERVER_NODE_PORT: '0' }).ended;
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('SERVER_DEFAULT_ADMIN_PASSWORD') as string });
  });

  test('passes its first minute, and keeps what it wrote in the volume', async () => {
    const port = String((await freePorts(1))[0]);
    const env = { ...HERE, SERVER_NODE_PORT: port, SERVER_DEFAULT_ADMIN_PASSWORD: 'of-admin' };
    const minute = path.join(ROOT, 'test/local/first-minute.mjs');
    const { code, out, err } = await inContainer([process.execPath, minute, `http://127.0.0.1:${port}`, ...node()], env)
      .ended;
    expect({ code, err: code === 0 ? '' : err }).toEqual({ code: 0, err: '' });
    expect(out).toContain('The first minute passed.');
    expect(existsSync(inImage('/data/writer.chk'))).toBe(true);
  });

  test('is healthy while the node serves, by the check that the image names', async () => {
    const started = inContainer(node(), { ...HERE, SERVER_NODE_PORT: '0', SERVER_MEM_DB: 'true' });
    const { port } = new URL((await started.seen(/is listening on (\S+)\n/))[1]!);
    expect(await health({ SERVER_NODE_PORT: port })).toEqual({ code: 0, out: '', err: '' });
    started.child.kill(image.stopSignal as NodeJS.Signals);
    expect((await started.ended).code).toBe(0);
    expect(await health({ SERVER_NODE_PORT: port })).toMatchObject({
      code: 1,
      err: expect.stringContaining('no answer') as string,
    });
  });

  test.skipIf(!hasCurl)(`takes a reader through "${FIRST_SECTION}"`, async () => {
    expect(steps.length).toBeGreaterThan(5);
    const started = inContainer(node(), { ...HERE, SERVER_NODE_PORT: '0' }, true);
    try {
      const url = (await started.seen(/is listening on (\S+)\n/))[1]!;
      const env = { SKUA_NODE: url, PATH: `${path.dirname(node()[0]!)}:/usr/bin:/bin` };
      for (const { command, expected, exported } of steps) {
        const line = command
          .replaceAll(ADDRESS, url)
          .replace(/^npm run /, 'skua ')
          .replace(/^npx skua /, 'skua ')
          .replace(/^curl/, 'exec curl -sS');
        const step = inContainer(['sh', '-c', line], { ...env, ...exported });
        if (command.includes(' -N ')) {
          // A subscription never ends by itself.
          await Promise.all(expected.map((text) => step.seen(new RegExp(`^${text}$`, 'm'))));
          step.child.kill('SIGTERM');
          await step.ended;
          continue;
        }
        const { code, out, err } = await step.ended;
        expect({ code, err: code === 0 ? '' : err }, command).toEqual({ code: 0, err: '' });
        for (const text of expected) expect(out.replaceAll(url, ADDRESS), command).toContain(text);
      }
    } finally {
      expect((await started.end()).code).toBe(0);
    }
  });
});
