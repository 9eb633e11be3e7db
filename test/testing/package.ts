import { cp, mkdir, symlink } from 'node:fs/promises';
import * as path from 'node:path';
import { build } from 'esbuild';
import { packed } from '../local/packed.ts';
import { ROOT } from '../local/spawn.ts';

/** A folder as that of a user: `skua` is installed in it, and what the projects need beside it. */
export interface Workplace {
  readonly folder: string;
  /** Puts a project into it, with the suite in both forms of modules. */
  project(name: string): Promise<string>;
  remove(): Promise<void>;
}

const PROJECTS = path.join(ROOT, 'test/testing/projects');
/** Of this repository's own packages, linked: nothing is fetched. */
const LINKED = ['@eventstore/db-client', '@kurrent/kurrentdb-client', 'vitest'];

/** The package as strangers get it: packed and installed. */
export async function workplace(): Promise<Workplace> {
  const { installed: folder, remove } = await packed();
  for (const name of LINKED) await link(path.join(ROOT, 'node_modules', name), path.join(folder, 'node_modules', name));
  return {
    folder,
    async project(name) {
      const at = path.join(folder, name);
      await cp(path.join(PROJECTS, name), at, { recursive: true });
      for (const [format, end] of [
        ['esm', 'mjs'],
        ['cjs', 'cjs'],
      ] as const)
        await build({
          absWorkingDir: ROOT,
          entryPoints: ['test/testing/suite.ts'],
          outfile: path.join(at, `suite.${end}`),
          format,
          target: 'es2022',
          platform: 'node',
        });
      return at;
    },
    remove,
  };
}

async function link(to: string, at: string): Promise<void> {
  await mkdir(path.dirname(at), { recursive: true });
  await symlink(to, at);
}
