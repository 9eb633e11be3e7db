// The page for browsers: what the package is built with, and a node that runs from its sources.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCES = fileURLToPath(new URL('page', import.meta.url));
/**
 * Where the page finds its files, from `/ui` on: a node says where that is from the address that is asked for
 * (handlers/ui/page.ts).
 */
const ASSETS = './assets/';
/** The most that the page may have in all, in bytes compressed by gzip: what a browser loads over plain HTTP. */
export const PAGE_BYTES_MAX = 155_000;

/** What the HTML names of the folder of the sources: scripts, styles, images. */
const REFERENCE = /(src|href)="\.\/([\w./-]+)"/g;
/** esbuild makes one script or style of these and all that they import; other files stay as they are. */
const BUNDLED = /\.(?:tsx?|css)$/;
const HASH_LENGTH = 8;
/** Quality of brotli, where a request waits for it. */
const QUICK_QUALITY = 5;

/**
 * The files of the page, in memory: `page`, the HTML, and `assets` by name, each name with the hash of its content in
 * it. `sources` are the files that they were made of. Rejects with what is wrong with the sources.
 */
export async function buildPage() {
  const html = await readFile(path.join(SOURCES, 'index.html'), 'utf8');
  const references = [...new Set(Array.from(html.matchAll(REFERENCE), ([, , file]) => file))];
  const { outputFiles, metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: references.filter((file) => BUNDLED.test(file)).map((file) => path.join(SOURCES, file)),
    outdir: 'assets',
    write: false,
    bundle: true,
    // One script for all views: in sixty of their own they are a fifth larger once compressed, and most are looked at
    // anyway.
    splitting: false,
    entryNames: `[name]-[hash]`,
    assetNames: `[name]-[hash]`,
    loader: { '.svg': 'file', '.woff2': 'file' },
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    tsconfigRaw: {},
    minify: true,
    legalComments: 'none',
    metafile: true,
    logLevel: 'silent',
  });
  const assets = new Map(outputFiles.map(({ path: file, contents }) => [path.basename(file), contents]));
  const names = new Map();
  for (const [file, { entryPoint }] of Object.entries(metafile.outputs)) {
    if (entryPoint === undefined) continue;
    const name = path.relative(SOURCES, path.join(ROOT, entryPoint));
    if (references.includes(name)) names.set(name, path.basename(file));
  }
  for (const file of references) {
    if (BUNDLED.test(file)) continue;
    const bytes = await readFile(path.join(SOURCES, file));
    const { name, ext } = path.parse(file);
    const hashed = `${name}-${createHash('sha256').update(bytes).digest('base64url').slice(0, HASH_LENGTH)}${ext}`;
    assets.set(hashed, bytes);
    names.set(file, hashed);
  }
  const page = html.replace(REFERENCE, (_, attribute, file) => `${attribute}="${ASSETS}${names.get(file)}"`);
  return { page: Buffer.from(page), assets, sources: Object.keys(metafile.inputs) };
}

/** Compressed for clients that accept that. `isForGood`: once for all nodes, so that it may take its time. */
export async function compressed(bytes, isForGood) {
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: isForGood ? constants.BROTLI_MAX_QUALITY : QUICK_QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    }),
    promisify(gzip)(bytes, { level: isForGood ? constants.Z_BEST_COMPRESSION : constants.Z_DEFAULT_COMPRESSION }),
  ]);
  return { br, gzip: gz };
}
