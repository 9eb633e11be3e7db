// The declarations of what other programs import: those of the surfaces, and of what these name, and of nothing else.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PEER_NAMES, PEERS, sourceOf, SURFACES } from './surfaces.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What a module is imported from; TypeScript writes no other form into declarations. */
const FROM = /\bfrom '([^']+)'|\bimport\("([^"]+)"\)/g;
/**
 * What is imported to be run. A declaration runs nothing, and newer compilers refuse one that names a file that is not
 * there.
 */
const FOR_ITS_EFFECT = /^import '[^']+';\n/gm;

/** Writes them below `folder`, and gives their paths there. Throws for one that imports what a user need not have. */
export async function writeTypes(folder) {
  const all = await mkdtemp(path.join(ROOT, 'dist/types-'));
  try {
    await compile(all);
    const wanted = SURFACES.map((surface) => declarationOf(sourceOf(surface)));
    for (const file of wanted) {
      const text = (await readFile(path.join(all, file), 'utf8'))
        .replaceAll(FOR_ITS_EFFECT, '')
        .replaceAll(FROM, (from, name, inline) =>
          from.replace(name ?? inline, PEER_NAMES[name ?? inline] ?? name ?? inline),
        );
      for (const [, from, inline] of text.matchAll(FROM)) {
        const name = from ?? inline;
        if (name.startsWith('.')) {
          const next = declarationOf(path.posix.join(path.posix.dirname(file), name));
          if (!wanted.includes(next)) wanted.push(next);
        } else if (!PEERS.some((peer) => name === peer || name.startsWith(`${peer}/`))) {
          throw new Error(`The declarations in ${file} import ${name}, which a user need not have.`);
        }
      }
      await mkdir(path.dirname(path.join(folder, file)), { recursive: true });
      await writeFile(
        path.join(folder, file),
        text.replaceAll(FROM, (all) => all.replace(/\.ts(['"])/, '.js$1')),
      );
    }
    return wanted;
  } finally {
    await rm(all, { recursive: true, force: true });
  }
}

function declarationOf(source) {
  return source.replace(/(?:\.d)?\.ts$/, '.d.ts');
}

async function compile(folder) {
  const config = path.join(folder, 'tsconfig.json');
  await writeFile(
    config,
    JSON.stringify({
      extends: path.join(ROOT, 'tsconfig.json'),
      files: SURFACES.map((surface) => path.join(ROOT, sourceOf(surface))),
      include: [],
      // Types are checked where they are written: `npm test`.
      compilerOptions: {
        noEmit: false,
        declaration: true,
        emitDeclarationOnly: true,
        noCheck: true,
        rootDir: ROOT,
        outDir: folder,
      },
    }),
  );
  const tsc = path.join(path.dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
  await promisify(execFile)(process.execPath, [tsc, '-p', config]).catch((error) => {
    throw new Error(`The declarations could not be made:\n${error.stdout}${error.stderr}`);
  });
}
