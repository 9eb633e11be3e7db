import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { RunReport } from './clients/run.ts';

const SCRIPT = fileURLToPath(new URL('clients/run.ts', import.meta.url));
/** All that can happen to the members happens once at least. */
const SECONDS = 5;

describe.each(['eventstore', 'kurrent'])('applications over the official client of %s, with each node preference', (library) => {
  test.each([['without TLS', []], ['over TLS, with users', ['--tls']]] as const)('%s: members are killed and resign, and nothing that was acknowledged or has to be given is lost, doubled or out of order', async (_, words) => {
    const folder = mkdtempSync(join(tmpdir(), 'skua-clients-test-'));
    try {
      const json = join(folder, 'report.json');
      const said = await new Promise<string>((resolve) => { execFile(process.execPath, [SCRIPT, '--library', library, '--seconds', String(SECONDS), '--json', json, ...words], (_error, out, err) => resolve(out + err)); });
      // Without a report the run itself has failed, and what it said tells why.
      expect(existsSync(json), said).toBe(true);
      const { problems, faults, acknowledged, given, subscriptions, told } = JSON.parse(readFileSync(json, 'utf8')) as RunReport;
      expect(problems, said).toEqual([]);
      expect(Object.values(faults)).toHaveLength(4);
      expect(acknowledged).toBeGreaterThan(100);
      expect(given).toBeGreaterThan(acknowledged);
      // Each of them follows a stream twice, `$all`, and consumes a group of a stream and one of `$all`; most have lost their member at least once.
      expect(subscriptions).toBeGreaterThan(20);
      expect(Object.keys(told)).toContain('append: unavailable');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
