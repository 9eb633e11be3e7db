import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { PageFile, PageFiles, PageText } from '../../handlers/http/page-files.ts';

export const SCRIPT_NAME = 'main-ABCDEFGH.js';
export const PAGE_HTML = `<!doctype html><title>Skua</title><script src="./assets/${SCRIPT_NAME}"></script>`;
export const SCRIPT = 'console.log("Skua");';

/** A page of one HTML and one script. */
export function fakePage(): PageFiles {
  return { page: async () => page, asset: async (name) => (name === SCRIPT_NAME ? script : null) };
}

function fileOf(text: string, contentType: string, etag: string): PageFile {
  const bytes = new TextEncoder().encode(text);
  return {
    contentType,
    etag,
    bytes,
    encoded: { br: Uint8Array.from(brotliCompressSync(bytes)), gzip: Uint8Array.from(gzipSync(bytes)) },
  };
}

// Once for all pages: a compressor takes more memory, and longer, than a request.
const page: PageText = { text: PAGE_HTML, etag: 'page' };
const script = fileOf(SCRIPT, 'text/javascript; charset=utf-8', 'script');
