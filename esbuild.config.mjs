// Bundles for an installed package, where Node.js does not run TypeScript: the command line, in parts that are loaded
// when a command needs them, what other programs import, with its declarations, the functions as `skua functions serve`
// runs them, and the entry points of worker threads; the page for browsers; and, not for the package, the functions as
// they are deployed. Packages are inside, so that nothing has to be installed beside them.
// `--functions` builds only the functions that are deployed, beside what is there.
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { build } from 'esbuild';
import { buildFunctions, buildSandbox, isFunctionFile, REQUIRE, sizeLines } from './infra/aws/build.mjs';
import { emptyBuilt } from './infra/packaging/built.mjs';
import { writeNeutral } from './infra/packaging/neutral.mjs';
import { noticesOf } from './infra/packaging/notices.mjs';
import { buildInParts, PROGRAM_PARTS } from './infra/packaging/parts.mjs';
import { NEUTRAL, PEER_NAMES, PEERS, REQUIRED, sourceOf, SURFACES } from './infra/packaging/surfaces.mjs';
import { writeTypes } from './infra/packaging/types.mjs';
import { isPageFile, writePage } from './local/ui/write.mjs';

const pathOf = createRequire(import.meta.url).resolve;
const sources = ['node_modules/@octokit/webhooks-examples/package.json', 'node_modules/quickjs-wasi/package.json'];
const isAll = !process.argv.includes('--functions');
/** Surfaces that need Node.js, and share their parts with the program. */
const FOR_NODE = SURFACES.filter((surface) => !NEUTRAL.includes(surface));

/** What starts a process or a thread, and asks for all else when it has looked at where it runs. */
const STARTS = { main: 'local/installed.mjs', worker: 'infra/jobs/job-worker.ts' };

/** What several parts share goes to all that they share where it has at most this many bytes. */
const SHARED_BYTES_MAX = 64_000;

/** What looks at the version of Node.js: for `import`, and for `require`. */
const NODE_CHECKS = ['node-check.js', 'node-check.cjs'];

/** Packages that are imported late for what they do, not for their names. */
const ONLY_DO = /reflect-metadata/;

/**
 * A CommonJS package that is imported late has no names in a bundle, where Node.js finds them in its source: such an
 * import has to go by a module of our own.
 */
function refuseNamelessParts({ outputs }) {
  for (const { entryPoint, exports } of Object.values(outputs)) {
    if (
      entryPoint?.includes('node_modules/') &&
      !ONLY_DO.test(entryPoint) &&
      exports.every((name) => name === 'default')
    )
      throw new Error(
        `${entryPoint} is imported late, and has no names in the bundle: import it from a module of ours.`,
      );
  }
}

/**
 * What other programs import and Node.js runs begins with a look at the version of Node.js. Before the parts, which are
 * in whatever order suits them, and in the line that has no source.
 */
async function checkNodeFirst(surface) {
  const file = `dist/${surface}.js`;
  await writeFile(file, `import"./node-check.js";${await readFile(file, 'utf8')}`);
}

/**
 * Whether a path in `dist` is one that a build gives, or what is built writes there: code that Node.js has compiled,
 * and the deployment.
 */
function isBuilt(file) {
  if (/^(?:\.cache|cdk\.out)\//.test(file)) return true;
  if (file.startsWith('functions/')) return isFunctionFile(file.slice('functions/'.length));
  if (file.startsWith('ui/')) return isPageFile(file.slice('ui/'.length));
  if (/^types(-\w{6})?\//.test(file)) return file.endsWith('.d.ts');
  return (
    [
      ...['main', 'worker', 'functions', ...SURFACES].map((name) => `${name}.js`),
      'sandbox-worker.mjs',
      'function-bootstrap.mjs',
      // An older build made it, as `functions/bootstrap.mjs`.
      'sandbox-worker.js',
      ...REQUIRED.map((name) => `${name}.cjs`),
      ...NODE_CHECKS,
      'package.json',
      'quickjs.wasm',
      'demo-webhooks.json.gz',
      'THIRD-PARTY.txt',
    ].includes(file) ||
    /^[\w.@-]+-[0-9A-Z]{8}\.js$/.test(file) ||
    /^skua-[\w.-]+-linux-(x64|arm64)\.tar\.gz(\.tmp)?$/.test(file)
  );
}

if (isAll) {
  await emptyBuilt('dist', isBuilt);
  const made = {
    outdir: 'dist',
    target: 'node22.16',
    mainFields: ['module', 'main'],
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'warning',
  };
  const { metafile } = await buildInParts({
    ...made,
    entryPoints: {
      main: STARTS.main,
      worker: STARTS.worker,
      ...Object.fromEntries(FOR_NODE.map((surface) => [surface, sourceOf(surface)])),
      functions: 'infra/aws/functions/all.ts',
    },
    external: PEERS,
    alias: PEER_NAMES,
    // Beside the entry points, so that all find worker and WebAssembly in their own folder.
    chunkNames: '[name]-[hash]',
    banner: { js: REQUIRE },
    parts: PROGRAM_PARTS,
    without: Object.values(STARTS),
    isShared: (name, outputs) => outputs[name].bytes <= SHARED_BYTES_MAX,
  });
  const sandbox = await buildSandbox({ ...made, outExtension: { '.js': '.mjs' } });
  sources.push(...Object.keys(sandbox.metafile.inputs));
  for (const file of NODE_CHECKS)
    await build({
      entryPoints: ['local/node-check.mjs'],
      outfile: `dist/${file}`,
      bundle: true,
      platform: 'node',
      format: file.endsWith('.cjs') ? 'cjs' : 'esm',
      target: 'node12',
      logLevel: 'warning',
    });
  await Promise.all(FOR_NODE.map(checkNodeFirst));
  const neutral = await writeNeutral('dist');
  sources.push(...neutral.flatMap((bundle) => bundle.sources));
  for (const { surface, bytes } of neutral)
    console.error(`  dist/${surface}.js ${(bytes / 1_000).toFixed(1)} kB compressed`);
  await writeTypes('dist/types');
  for (const surface of REQUIRED) await copyFile(`local/${surface}/${surface}.cjs`, `dist/${surface}.cjs`);
  sources.push(...Object.keys(metafile.inputs));
  refuseNamelessParts(metafile);
  // Of modules whatever folder it is put into.
  await writeFile('dist/package.json', '{ "type": "module" }\n');
  await copyFile(pathOf('quickjs-wasi/quickjs.wasm'), 'dist/quickjs.wasm');
  // For `skua functions serve`.
  await copyFile('local/functions/bootstrap.mjs', 'dist/function-bootstrap.mjs');
  // For `skua demo`.
  await writeFile(
    'dist/demo-webhooks.json.gz',
    await promisify(gzip)(await readFile(pathOf('@octokit/webhooks-examples/api.github.com/index.json')), { level: 9 }),
  );
}

const page = isAll ? await writePage('dist/ui') : null;
if (page !== null) {
  sources.push(...page.sources);
  console.error(`\n  dist/ui ${(page.bytes / 1_000).toFixed(1)} kB compressed`);
}
const sizes = await buildFunctions();
if (isAll)
  await writeFile('dist/THIRD-PARTY.txt', await noticesOf([...sources, ...sizes.flatMap((size) => size.sources)]));
// On stderr: stdout is that of `npm pack`.
console.error(['', ...sizeLines(sizes), ''].join('\n'));
