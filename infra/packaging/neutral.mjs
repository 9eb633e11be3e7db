// Bundles of the surfaces that run wherever there is `fetch`: one file each, which imports nothing and is small, since
// browsers load it. What is not there on such a platform fails the build: a module of Node.js, a package.
import { mkdir, writeFile } from 'node:fs/promises';
import * as path from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { build } from 'esbuild';
import { NEUTRAL, sourceOf } from './surfaces.mjs';

/**
 * Of each surface the files of its bundle, its text, its size compressed, the sources that it was made of, and what it
 * imports.
 */
export function bundleNeutral(surfaces = NEUTRAL) {
  // One by one: what two of them share is in each.
  return Promise.all(
    surfaces.map(async (surface) => {
      const { metafile, outputFiles } = await build({
        entryPoints: { [surface]: sourceOf(surface) },
        outdir: 'dist',
        bundle: true,
        platform: 'neutral',
        format: 'esm',
        target: 'es2022',
        // Names and lines stay: an error that nobody catches shows the line, and the class.
        minifySyntax: true,
        legalComments: 'none',
        metafile: true,
        write: false,
        logLevel: 'warning',
      });
      const { text } = outputFiles.find((file) => file.path.endsWith('.js'));
      const { length } = await promisify(gzip)(text, { level: 9 });
      return {
        surface,
        files: outputFiles,
        text,
        bytes: length,
        sources: Object.keys(metafile.inputs),
        imports: Object.values(metafile.outputs).flatMap(({ imports }) => imports.map((each) => each.path)),
      };
    }),
  );
}

/** Writes them into `outdir`. */
export async function writeNeutral(outdir) {
  const bundles = await bundleNeutral();
  await mkdir(outdir, { recursive: true });
  for (const { files } of bundles)
    for (const file of files) await writeFile(path.join(outdir, path.basename(file.path)), file.contents);
  return bundles;
}
