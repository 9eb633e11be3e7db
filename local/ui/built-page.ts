import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { SkuaError } from '../../core/base/errors.ts';
import { decodeText } from '../../core/base/text.ts';
import type { Log } from '../../core/ports/log.ts';
import type { PageFile, PageFiles, PageText } from '../../handlers/http/page-files.ts';
import { bundled } from '../../infra/runtime/version.ts';

const CONTENT_TYPES: ReadonlyMap<string, string> = new Map([
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.woff2', 'font/woff2'],
]);
const PAGE_NAME = 'index.html';
const ETAG_LENGTH = 16;

interface LoadedPage {
  readonly page: PageText;
  readonly assets: ReadonlyMap<string, PageFile>;
}

/**
 * The page that a node serves: in an installed package the files that were built with it, else what is built of the
 * sources. Nothing is looked at before the first browser asks; then all of it stays in memory, some hundred kilobytes.
 * What failed is tried again by the next request.
 */
export function pageFiles(log: Log): PageFiles {
  let loading: Promise<LoadedPage> | null = null;
  const loaded = (): Promise<LoadedPage> =>
    (loading ??= load().catch((error: unknown) => {
      loading = null;
      log.error('the web page could not be loaded', { error });
      throw new SkuaError(
        'page_unavailable',
        `The web page could not be loaded: ${(error as Error).message}`,
        {},
        error,
      );
    }));
  return {
    page: async () => (await loaded()).page,
    asset: async (name) => (await loaded()).assets.get(name) ?? null,
  };
}

function load(): Promise<LoadedPage> {
  const folder = bundled('./ui/');
  return folder === null ? build() : read(folder);
}

async function read(folder: URL): Promise<LoadedPage> {
  const assets = new URL('assets/', folder);
  const names = (await readdir(assets)).filter((name) => CONTENT_TYPES.has(extname(name)));
  const [page, ...files] = await Promise.all([
    readFile(new URL(PAGE_NAME, folder)),
    ...names.map((name) => readOne(assets, name)),
  ] as const);
  return { page: textOf(page), assets: new Map(names.map((name, i) => [name, files[i]!])) };
}

async function readOne(folder: URL, name: string): Promise<PageFile> {
  const [bytes, br, gzip] = await Promise.all(
    ['', '.br', '.gz'].map((suffix) => readFile(new URL(name + suffix, folder))),
  );
  return fileOf(name, bytes!, { br: br!, gzip: gzip! });
}

async function build(): Promise<LoadedPage> {
  // By an address that the bundler does not follow: esbuild is no part of the package.
  const { buildPage, compressed } = (await import(
    /* @vite-ignore */ new URL('./build.mjs', import.meta.url).href
  )) as typeof import('./build.mjs');
  const { page, assets } = await buildPage();
  const made = async (name: string, bytes: Uint8Array<ArrayBuffer>): Promise<PageFile> =>
    fileOf(name, bytes, await compressed(bytes, false));
  return {
    page: textOf(page),
    assets: new Map(
      await Promise.all(Array.from(assets, async ([name, bytes]) => [name, await made(name, bytes)] as const)),
    ),
  };
}

function fileOf(name: string, bytes: Uint8Array<ArrayBuffer>, encoded: PageFile['encoded']): PageFile {
  return { contentType: CONTENT_TYPES.get(extname(name))!, etag: etagOf(bytes), bytes, encoded };
}

function textOf(bytes: Uint8Array): PageText {
  return { etag: etagOf(bytes), text: decodeText(bytes) };
}

function etagOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, ETAG_LENGTH);
}
