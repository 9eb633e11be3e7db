import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { nodeLicence, offReason } from '../../../local/auto-scavenge/open-auto-scavenge.ts';
import { LicenceIssuer } from '../../support/licence-issuer.ts';
import { load, problems } from '../config/support.ts';

/** Options of auto-scavenge and of the licence; the numbers are those of the scenarios of auto-scavenge. */

describe('81 82 83: AutoScavenge:Enabled with dev mode and memory', () => {
  const on = ['--auto-scavenge-enabled'];
  const off = ['--auto-scavenge-enabled', 'false'];
  const dev = ['--dev'];
  const memory = ['--mem-db'];

  test.each([
    [[...on, ...dev], 'AutoScavenge is not compatible with dev mode: leave out --auto-scavenge-enabled or --dev.'],
    [[...on, ...memory], 'AutoScavenge is not compatible with mem-db: leave out --auto-scavenge-enabled or --mem-db.'],
    [
      [...on, ...memory, ...dev],
      'AutoScavenge is not compatible with dev mode: leave out --auto-scavenge-enabled or --dev.',
    ],
  ])('%j stops the start', (words, problem) => {
    expect(problems(words)).toEqual([problem]);
  });

  test('as it was spelt', () => {
    expect(problems(['--mem-db'], { yaml: 'AutoScavenge:\n  Enabled: true' })).toEqual([
      'AutoScavenge is not compatible with mem-db: leave out AutoScavenge:Enabled (node.yaml:2) or --mem-db.',
    ]);
    expect(problems(['--insecure'], { env: { SERVER_AUTO_SCAVENGE__ENABLED: 'true', SERVER_DEV: 'true' } })).toEqual([
      'AutoScavenge is not compatible with dev mode: leave out SERVER_AUTO_SCAVENGE__ENABLED or SERVER_DEV.',
    ]);
  });

  test.each([
    [[], null],
    [on, null],
    [off, /AutoScavenge:Enabled is false/],
    [dev, /dev mode/],
    [memory, /in memory/],
    [[...dev, ...memory], /dev mode/],
    [[...off, ...dev], /AutoScavenge:Enabled is false/],
    [[...off, ...memory], /AutoScavenge:Enabled is false/],
  ] as const)('%j', (words, reason) => {
    const found = offReason(load(words).values);
    if (reason === null) expect(found).toBeNull();
    else expect(found).toMatch(reason);
  });
});

describe('values', () => {
  test.each([
    [
      ['--auto-scavenge-time-zone', 'Europe/Olso'],
      "--auto-scavenge-time-zone must be the name of a time zone, such as UTC or Europe/Oslo, not 'Europe/Olso'.",
    ],
    [
      ['--auto-scavenge-node-lost-after', '0'],
      "--auto-scavenge-node-lost-after must be a whole number from 1 to 10080, not '0'.",
    ],
    [['--auto-scavenge-enabled=maybe'], "--auto-scavenge-enabled must be true or false, not 'maybe'."],
  ])('%j is refused', (words, problem) => {
    expect(problems(words)).toEqual([problem]);
  });
});

describe('the licence of a node', () => {
  const issuer = new LicenceIssuer(new Uint8Array(32));
  const key = issuer.issue({ features: ['ALL'], expiresAtMs: 2_000 });
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'skua-licence-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const refusalOf = async (...words: string[]) =>
    (await nodeLicence(load(words).values, nodeKeys)).refusal('AUTO_SCAVENGE', 1_000);

  test("with the issuer's file, and without", async () => {
    const file = path.join(folder, 'issuer.pub');
    await writeFile(file, issuer.publicKey);
    expect(await refusalOf('--licensing-license-key', key, '--licensing-issuer-key-file', file)).toBeNull();
    expect(await refusalOf('--licensing-license-key', key, '--licensing-issuer-key-file', `${file}.x`)).toMatch(
      /can't be read: .*issuer\.pub\.x \(ENOENT\)\.$/,
    );
    expect(await refusalOf('--licensing-license-key', key, '--licensing-issuer-key-file', folder)).toMatch(/EISDIR/);
    expect(await refusalOf('--licensing-license-key', key)).toMatch(/IssuerKeyFile must name/);
    expect(await refusalOf()).toBeNull();
    expect(await refusalOf('--licensing-use-built-in', 'false')).toMatch(/no licence key/);
  });
});
