// Writes the page into the package: each file as it is, and compressed beside it.
import { mkdir, writeFile } from 'node:fs/promises';
import * as path from 'node:path';
import { emptyBuilt } from '../../infra/packaging/built.mjs';
import { buildPage, compressed } from './build.mjs';

const PAGE_FILE = /^(index\.html|assets\/[\w.-]+)(\.br|\.gz)?$/;

/** Whether a path in the folder of the page is one that a build gives. */
export function isPageFile(file) {
  return PAGE_FILE.test(file);
}

/**
 * Into `outdir`: `index.html`, which a node sends with other addresses in it, and the folder `assets`, compressed.
 * Resolves with the size, `bytes` compressed by gzip, and `sources`, the files that it was made of.
 */
export async function writePage(outdir) {
  await emptyBuilt(outdir, isPageFile);
  await mkdir(path.join(outdir, 'assets'), { recursive: true });
  const { page, assets, sources } = await buildPage();
  await writeFile(path.join(outdir, 'index.html'), page);
  let bytes = page.length;
  for (const [name, content] of assets) {
    const { br, gzip } = await compressed(content, true);
    bytes += gzip.length;
    await Promise.all(
      [
        ['', content],
        ['.br', br],
        ['.gz', gzip],
      ].map(([suffix, data]) => writeFile(path.join(outdir, 'assets', name + suffix), data)),
    );
  }
  return { bytes, sources };
}
