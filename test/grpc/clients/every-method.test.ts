import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TESTS = globSync('test/grpc/clients/**/*.ts', { cwd: ROOT })
  .map((file) => readFileSync(join(ROOT, file), 'utf8'))
  .join('\n');

/** What a client offers: the methods of its class, and those that its files declare to be its, but for projections. */
function methodsOf(library: string): string[] {
  const found = new Set<string>();
  for (const file of globSync('dist/**/*.d.ts', { cwd: join(ROOT, 'node_modules', library) })) {
    const text = readFileSync(join(ROOT, 'node_modules', library, file), 'utf8');
    if (file.includes('projections')) continue;
    for (const [, body = ''] of text.matchAll(
      /declare module "[./]*Client" \{\s+interface Client \{([\s\S]*?)\n {4}\}/g,
    ))
      for (const [, name = ''] of body.matchAll(/^ {8}(\w+)[<(]/gm)) found.add(name);
    if (file === join('dist', 'Client', 'index.d.ts'))
      for (const [, name = ''] of text.matchAll(/^ {4}(?:static |get )?(\w+)(?:[<(]|: \()/gm))
        if (name !== 'constructor' && name !== 'rustClient') found.add(name);
  }
  return [...found].sort();
}

test.each([
  ['@eventstore/db-client', 28],
  ['@kurrent/kurrentdb-client', 32],
])('%s: none of its %i methods is forgotten', (library, count) => {
  const methods = methodsOf(library);
  expect(methods.filter((name) => !new RegExp(`\\.${name}\\b`).test(TESTS))).toEqual([]);
  expect(methods).toHaveLength(count);
});
