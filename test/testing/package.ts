import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { build } from 'esbuild';
import { ROOT } from '../local/spawn.ts';

/** A folder as that of a user: `skua` is installed in it, and what the projects need beside it. */
export interface Workplace {
  readonly folder: string;
  /** Puts a project into it, with the suite in the form that its runner takes. */
  project(name: string): Promise<string>;
  remove(): Promise<void>;
}

const PROJECTS = path.join(ROOT, 'test/testing/projects');
/** Of this repository's own packages, linked: nothing is fetched. */
const LINKED = ['@eventstore/db-client', 'vitest'];

/** The package with the bundle that `skua/testing` is, and nothing else of it. */
export async function workplace(): Promise<Workplace> {
  const folder = await mkdtemp(path.join(tmpdir(), 'skua-testing-'));
  await bundle(path.join(folder, 'node_modules/skua'));
  for (const name of LINKED) await link(path.join(ROOT, 'node_modules', name), path.join(folder, 'node_modules', name));
  return {
    folder,
    async project(name) {
      const at = path.join(folder, name);
      await cp(path.join(PROJECTS, name), at, { recursive: true, filter: (from) => path.basename(from) !== 'node_modules' });
      // Brings its own runner.
      if (name === 'jest') await link(path.join(PROJECTS, name, 'node_modules'), path.join(at, 'node_modules'));
      // Older than what it runs on: Jest's parser need not know the newest syntax.
      await build({ absWorkingDir: ROOT, entryPoints: ['test/testing/suite.ts'], outfile: path.join(at, name === 'jest' ? 'suite.cjs' : 'suite.mjs'), format: name === 'jest' ? 'cjs' : 'esm', target: 'es2022', platform: 'node' });
      return at;
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

async function link(to: string, at: string): Promise<void> {
  await mkdir(path.dirname(at), { recursive: true });
  await symlink(to, at);
}

async function bundle(folder: string): Promise<void> {
  const dist = path.join(folder, 'dist');
  await build({
    absWorkingDir: ROOT, entryPoints: { testing: 'local/testing/index.ts', embedded: 'local/embedded/index.ts', worker: 'infra/jobs/worker.ts', 'sandbox-worker': 'infra/quickjs/worker.ts' }, outdir: dist,
    bundle: true, splitting: true, chunkNames: '[name]-[hash]', platform: 'node', format: 'esm', target: 'node24', mainFields: ['module', 'main'], minifySyntax: true, logLevel: 'warning',
    banner: { js: 'import{createRequire as __createRequire}from"node:module";const require=__createRequire(import.meta.url);' },
  });
  await cp(path.join(ROOT, 'local/testing/testing.cjs'), path.join(dist, 'testing.cjs'));
  await writeFile(path.join(dist, 'package.json'), '{ "type": "module" }\n');
  await writeFile(path.join(folder, 'package.json'), JSON.stringify({
    name: 'skua', version: '0.0.0', type: 'module',
    exports: { './testing': { require: './dist/testing.cjs', default: './dist/testing.js' }, './embedded': './dist/embedded.js' },
  }));
}
