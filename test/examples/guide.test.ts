import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../local/spawn.ts';

/** Largest size of the page in bytes: it is a walk, and the rest stands in the files. */
const PAGE_BYTES_MAX = 6_144;

test('what the page of the guide quotes of the clinic stands in the file that it names', () => {
  const page = readFileSync(path.join(ROOT, 'local/guide/example.md'), 'utf8');
  expect(Buffer.byteLength(page)).toBeLessThanOrEqual(PAGE_BYTES_MAX);
  let file = '';
  let quoted = 0;
  for (const [, named, block] of page.matchAll(/`([\w.-]+\.ts)`|^```ts\n([^]*?)^```/gm)) {
    if (named !== undefined) file = readFileSync(path.join(ROOT, 'test/examples/clinic', named), 'utf8');
    else {
      expect(file).toContain(block);
      quoted++;
    }
  }
  expect(quoted).toBe(page.match(/^```\w/gm)!.length);
});
