import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { bySize } from '../support/run-size.ts';
import type { RunReport } from './processes/run.ts';

const SCRIPT = fileURLToPath(new URL('processes/long.ts', import.meta.url));
const MINUTES = bySize(0.2, 0.2, 1);

/**
 * The ten minutes of `processes/long.ts` in short. Where namespaces are not allowed the script says so, and nobody is
 * cut off and no disk is full.
 */
describe('three members as real processes, killed, standing still, cut off, with full disks, replaced', () => {
  test.each(bySize(['directory'], ['directory'], ['directory', 's3']))(
    'on %s: nothing acknowledged is lost or doubled, and all copies are alike',
    async (storage) => {
      const folder = mkdtempSync(join(tmpdir(), 'skua-cluster-test-'));
      try {
        const json = join(folder, 'report.json');
        const child = spawn(
          process.execPath,
          [SCRIPT, '--minutes', String(MINUTES), '--storage', storage, '--json', json],
          { stdio: ['ignore', 'ignore', 'pipe'] },
        );
        let said = '';
        child.stderr.on('data', (text: Buffer) => {
          said += text.toString();
        });
        const code = await new Promise((resolve) => {
          child.once('exit', resolve);
        });
        expect(code === 0 || code === 1, said).toBe(true);
        const report = JSON.parse(readFileSync(json, 'utf8')) as RunReport;
        expect(report.problems, said).toEqual([]);
        expect(report.acknowledged).toBeGreaterThan(50);
        expect(Object.keys(report.faults).length).toBeGreaterThan(2);
        expect(report.copies?.records.length).toBe(3);
        expect(report.seenBySubscribers).toBeGreaterThan(report.events);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
