// The bundles of the functions, one folder each: `index.mjs` with what every call needs, parts beside it that are
// loaded when they are first used, and for functions that run scripts the sandbox's thread and its WebAssembly.
// Nothing is left outside: a function has no node_modules.
import { copyFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { emptyBuilt } from '../packaging/built.mjs';
import { buildInParts, FUNCTION_PARTS } from '../packaging/parts.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The functions: whether each runs routing scripts, and its largest size in bytes, without source maps and WebAssembly,
 * which tests look at: no build fails by it.
 */
export const FUNCTIONS = [
  { name: 'webhook', hasSandbox: true, bytesMax: 1_000_000 },
  { name: 'admin', hasSandbox: true, bytesMax: 1_800_000 },
  { name: 'streams', hasSandbox: false, bytesMax: 1_360_000 },
  { name: 'tick', hasSandbox: false, bytesMax: 1_300_000 },
];

/** Packages without ES modules ask for `require`. */
export const REQUIRE = 'import{createRequire as __r}from"module";var require=__r(import.meta.url);';

const FUNCTION_FILE =
  /^(bootstrap\.mjs|[a-z]+\/(index\.mjs|sandbox-worker\.mjs|parts\/[\w.@-]+\.mjs)(\.map)?|[a-z]+\/quickjs\.wasm)$/;

/** Whether a path in the folder of the functions is one that a build gives. */
export function isFunctionFile(file) {
  return FUNCTION_FILE.test(file);
}

/**
 * Builds all functions into `outdir`. Resolves with each one's size: `bytes` of all its code and their limit,
 * `indexBytes` of what is loaded at the start, `inputs`, the bytes of each package or folder in it, and `sources`, the
 * files.
 */
export async function buildFunctions(outdir = path.join(ROOT, 'dist', 'functions')) {
  await emptyBuilt(outdir, isFunctionFile);
  return Promise.all(FUNCTIONS.map((each) => buildFunction(each, path.join(outdir, each.name))));
}

async function buildFunction({ name, hasSandbox, bytesMax }, folder) {
  const made = {
    absWorkingDir: ROOT,
    outdir: folder,
    target: 'node24',
    outExtension: { '.js': '.mjs' },
    mainFields: ['module', 'main'],
    minify: true,
    sourcemap: 'linked',
    // The sources stand in the repository; with them in it a map would be larger than its bundle many times over.
    sourcesContent: false,
    legalComments: 'none',
    logLevel: 'warning',
  };
  const { metafile } = await buildInParts({
    ...made,
    entryPoints: { index: `infra/aws/functions/${name}.ts` },
    chunkNames: 'parts/[name]-[hash]',
    banner: { js: REQUIRE },
    parts: FUNCTION_PARTS,
    // It is loaded in any case.
    isShared: (file, outputs) => startOf(outputs, indexOf(outputs)).has(file),
  });
  const outputs = [metafile.outputs];
  const sources = Object.keys(metafile.inputs);
  if (hasSandbox) {
    const sandbox = await buildSandbox(made);
    outputs.push(sandbox.metafile.outputs);
    sources.push(...Object.keys(sandbox.metafile.inputs));
    await copyFile(
      createRequire(import.meta.url).resolve('quickjs-wasi/quickjs.wasm'),
      path.join(folder, 'quickjs.wasm'),
    );
  }
  return { ...sizeOf(name, bytesMax, Object.assign({}, ...outputs)), sources };
}

/** The thread of routing scripts: one file. */
export function buildSandbox(options) {
  return build({
    ...options,
    entryPoints: { 'sandbox-worker': 'infra/quickjs/script-worker.ts' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    metafile: true,
  });
}

function indexOf(outputs) {
  return Object.keys(outputs).find((each) => /\/index\.m?js$/.test(each));
}

function sizeOf(name, bytesMax, outputs) {
  const inputs = {};
  let bytes = 0;
  let indexBytes = 0;
  for (const [file, output] of Object.entries(outputs)) {
    if (!file.endsWith('.mjs')) continue;
    bytes += output.bytes;
    for (const [input, { bytesInOutput }] of Object.entries(output.inputs)) {
      const owner = ownerOf(input);
      inputs[owner] = (inputs[owner] ?? 0) + bytesInOutput;
    }
  }
  for (const file of startOf(outputs, indexOf(outputs))) indexBytes += outputs[file].bytes;
  return { name, bytes, bytesMax, indexBytes, inputs };
}

/** A file and all that it imports at once. */
function startOf(outputs, file, seen = new Set()) {
  if (seen.has(file)) return seen;
  seen.add(file);
  for (const { path: imported, kind } of outputs[file].imports)
    if (kind === 'import-statement' && imported in outputs) startOf(outputs, imported, seen);
  return seen;
}

function ownerOf(input) {
  const at = input.lastIndexOf('node_modules/');
  const [first, second] = input.slice(at < 0 ? 0 : at + 'node_modules/'.length).split('/');
  return at < 0 || first.startsWith('@') ? `${first}/${second}` : first;
}

/** A line for each function. */
export function sizeLines(sizes) {
  return sizes.map(
    ({ name, bytes, indexBytes }) =>
      `  dist/functions/${name.padEnd(8)} ${kilobytes(bytes)} in all, ${kilobytes(indexBytes)} at the start`,
  );
}

function kilobytes(bytes) {
  return `${(bytes / 1_000).toFixed(1).padStart(7)} kB`;
}
