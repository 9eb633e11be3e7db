import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { bySize } from '../support/run-size.ts';
import type { RunReport } from './clients/run.ts';

const SCRIPT = fileURLToPath(new URL('clients/run.ts', import.meta.url));
/** All that can happen to the members happens once at least. */
const SECONDS = 5;

const WITHOUT = 'without TLS';
const OVER_TLS = 'over TLS, with users';
/** The newer library over TLS; `npm run test:all` has both ways of both. */
const RUNS: readonly (readonly [library: string, how: string])[] = bySize(
  [['kurrent', OVER_TLS]],
  [['kurrent', OVER_TLS]],
  [
    ['kurrent', OVER_TLS],
    ['eventstore', OVER_TLS],
    ['kurrent', WITHOUT],
    ['eventstore', WITHOUT],
  ],
);

describe('applications over an official client, with each node preference', () => {
  test.each(RUNS)(
    'that of %s, %s: members are killed and resign, and nothing that was acknowledged or has to be given is lost, doubled or out of order',
    async (library, how) => {
      const folder = mkdtempSync(join(tmpdir(), 'skua-clients-test-'));
      try {
        const json = join(folder, 'report.json');
        const said = await new Promise<string>((resolve) => {
          execFile(
            process.execPath,
            [
              SCRIPT,
              '--library',
              library,
              '--seconds',
              String(SECONDS),
              '--json',
              json,
              ...(how === OVER_TLS ? ['--tls'] : []),
            ],
            (_error, out, err) => resolve(out + err),
          );
        });
        // Without a report the run itself has failed, and what it said tells why.
        expect(existsSync(json), said).toBe(true);
        const { problems, faults, acknowledged, given, subscriptions, told } = JSON.parse(
          readFileSync(json, 'utf8'),
        ) as RunReport;
        expect(problems, said).toEqual([]);
        expect(Object.values(faults)).toHaveLength(4);
        expect(acknowledged).toBeGreaterThan(100);
        expect(given).toBeGreaterThan(acknowledged);
        // Each of them follows a stream twice, `$all`, and consumes a group of a stream and one of `$all`; most have
        // lost their member at least once.
        expect(subscriptions).toBeGreaterThan(20);
        expect(Object.keys(told)).toContain('append: unavailable');
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
