import { copyFile, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { VERSION } from '../../infra/runtime/version.ts';
import { onceARun } from '../support/once-a-run.ts';
import { ROOT, Spawned } from './spawn.ts';
import type { Ended } from './spawn.ts';

/** What a clone has not, and what work in one leaves behind. */
const NOT_CLONED =
  /^(?:\.git|data(?:-.*)?|dist|anchors?\.jsonl?|backups|copy|event\.json|restored|secret|order\.json|picky\.js|route\.js|.*\.tgz)$/;
/** What a walk through README and guide, and work, leave in a checkout, none of which may be packed. */
export const LEFTOVERS = [
  'secret',
  'backups/config',
  'restored/chunk-000000.000000',
  'data/writer.chk',
  'copy/writer.chk',
  'route.js',
  'order.json',
  'test/x.tmp',
  'notes.md',
  'dist/.cache/v24/a',
] as const;
/** What `npm pack` told. */
const TOLD = 'told.json';

/** The packed package, installed in a folder of its own without a network, and the checkout that it was packed in. */
export interface Packed {
  readonly clone: string;
  readonly installed: string;
  /** What `npm pack` told about it. */
  readonly told: {
    readonly filename: string;
    readonly files: readonly { readonly path: string; readonly size: number }[];
  };
  /** For commands: this Node.js is the first on the path, and after it what the package brings. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Runs a line of a shell. */
  shell(line: string, options: ShellOptions): Spawned;
  remove(): Promise<void>;
}

export interface ShellOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** It stays until it is ended. */
  readonly isServer?: boolean;
}

/** A copy of what was packed and installed once in this run, which takes some ten seconds: for the long run. */
export async function packed(): Promise<Packed> {
  const folder = await mkdtemp(path.join(tmpdir(), 'skua-packed-'));
  // Links stay as they are: those to commands are within what is copied.
  await cp(await onceARun('packed', pack), folder, { recursive: true, verbatimSymlinks: true });
  return {
    ...inFolder(folder),
    told: JSON.parse(await readFile(path.join(folder, TOLD), 'utf8')) as Packed['told'],
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

function inFolder(folder: string): Omit<Packed, 'told' | 'remove'> {
  const [clone, installed] = [path.join(folder, 'clone'), path.join(folder, 'installed')];
  // npm takes what another npm told its scripts for settings of its own: these tests may run in one.
  const env = {
    ...Object.fromEntries(
      Object.keys(process.env)
        .filter((name) => /^npm_/i.test(name))
        .map((name) => [name, undefined]),
    ),
    PATH: [path.dirname(process.execPath), path.join(installed, 'node_modules/.bin'), process.env['PATH']].join(
      path.delimiter,
    ),
    npm_config_offline: 'true',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
  };
  const shell: Packed['shell'] = (line, { cwd, env: more = {}, isServer = false }) =>
    new Spawned('bash', ['-c', line], { ...env, ...more }, { cwd, isGroup: isServer });
  return { clone, installed, env, shell };
}

async function pack(folder: string): Promise<void> {
  const { clone, installed, shell } = inFolder(folder);
  await cp(ROOT, clone, {
    recursive: true,
    filter: (from) =>
      path.basename(from) !== 'node_modules' &&
      !(path.dirname(from) === path.resolve(ROOT) && NOT_CLONED.test(path.basename(from))),
  });
  await symlink(path.resolve(ROOT, 'node_modules'), path.join(clone, 'node_modules'));
  for (const file of LEFTOVERS) {
    await mkdir(path.dirname(path.join(clone, file)), { recursive: true });
    await writeFile(path.join(clone, file), 'left behind');
  }
  const told = JSON.parse((await ok(shell('npm pack --json', { cwd: clone }).ended)).out) as [Packed['told']];
  await mkdir(installed);
  await writeFile(path.join(installed, 'package.json'), '{ "private": true }');
  await ok(shell(`npm install '${path.join(clone, told[0].filename)}'`, { cwd: installed }).ended);
  await writeFile(path.join(folder, TOLD), JSON.stringify(told[0]));
}

/** The archive of this machine, without its ending. */
export const ARCHIVE = `skua-${VERSION}-linux-${process.arch}`;
/** Whether there is one of this machine. */
export const isArchived = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch);

/** Path of the archive, made once in this run of the Node.js that runs the tests: it may be read only. */
export async function archived(): Promise<string> {
  return path.join(await onceARun('archived', archive), `${ARCHIVE}.tar.gz`);
}

async function archive(folder: string): Promise<void> {
  const all = await packed();
  try {
    const node = path.join(folder, 'node');
    await mkdir(path.join(node, 'bin'), { recursive: true });
    await symlink(process.execPath, path.join(node, 'bin/node'));
    await writeFile(path.join(node, 'LICENSE'), 'the licence of Node.js');
    // The bundles are there: `packed` has built them.
    await ok(
      all.shell(`npm run build:archive -- ${process.arch} '${node}'`, {
        cwd: all.clone,
        env: { npm_config_ignore_scripts: 'true' },
      }).ended,
    );
    await copyFile(path.join(all.clone, 'dist', `${ARCHIVE}.tar.gz`), path.join(folder, `${ARCHIVE}.tar.gz`));
  } finally {
    await all.remove();
  }
}

/** What has ended, and well. */
export async function ok(ended: Promise<Ended>): Promise<Ended> {
  const { code, out, err } = await ended;
  if (code !== 0) throw new Error(`ended with ${code}:\n${out}\n${err}`);
  return { code, out, err };
}

/** Names of the members that declarations promise. */
export function declaredMembers(declarations: string): readonly string[] {
  return [...new Set([...declarations.matchAll(/^ {4,}(?:readonly )?(\w+)\??(?:: |\(|<)/gm)].map(([, name]) => name!))];
}
