import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { expect } from 'vitest';
import type { Program } from './guide-blocks.ts';
import { ok } from './packed.ts';
import type { Packed } from './packed.ts';
import { ROOT, startedNode } from './spawn.ts';

/** Packages that programs of the guide import beside ours, and where they lie in this checkout. */
const BESIDE: Readonly<Record<string, string>> = {
  vitest: 'vitest',
  zod: 'zod',
  '@kurrent/kurrentdb-client': '@kurrent/kurrentdb-client',
  '@eventstore/db-client': '@eventstore/db-client',
  '@event-driven-io/emmett': 'emmett-current',
  '@dcb-es/event-store': '@dcb-es/event-store',
};

/** Puts what programs import beside the installed package: nothing is fetched. */
export function linkBeside({ installed }: Packed): void {
  for (const [name, from] of Object.entries(BESIDE)) {
    const at = path.join(installed, 'node_modules', name);
    if (existsSync(at)) continue;
    mkdirSync(path.dirname(at), { recursive: true });
    symlinkSync(path.join(ROOT, 'node_modules', from), at);
  }
}

const SQLITE_IS_YOUNG = /^\(node:\d+\) ExperimentalWarning: SQLite .*\n\(Use .*\n/;

/**
 * Runs a program as it stands there, in a folder of its own below that of the package: a file of tests by Vitest, all
 * else by Node.js, which ends well, says nothing on stderr, and prints what the comments say. What asks for a node by
 * `SKUA_NODE` gets one.
 */
export async function runProgram(
  { language, code, modules, expected }: Program,
  all: Packed,
  node = process.execPath,
): Promise<void> {
  const end = language === 'ts' ? 'ts' : 'mjs';
  const at = mkdtempSync(path.join(all.installed, 'program-'));
  writeFileSync(path.join(at, 'package.json'), '{ "private": true, "type": "module" }');
  if (modules.includes('vitest')) {
    writeFileSync(path.join(at, `guide.test.${end}`), code);
    const vitest = path.join(all.installed, 'node_modules/vitest/vitest.mjs');
    const { out } = await ok(all.shell(`'${node}' '${vitest}' run --root . --reporter=json`, { cwd: at }).ended);
    const report = JSON.parse(out) as { numPassedTests: number; numTotalTests: number };
    expect(report.numPassedTests).toBeGreaterThan(0);
    return expect(report.numPassedTests).toBe(report.numTotalTests);
  }
  writeFileSync(path.join(at, `main.${end}`), code);
  const started = code.includes('process.env.SKUA_NODE') ? await startedNode(['--insecure', '--mem-db']) : null;
  try {
    const env = { SKUA_NODE: started?.url };
    const { out, err } = await ok(all.shell(`exec '${node}' main.${end}`, { cwd: at, env }).ended);
    // What the oldest Node.js says of a program that imports `node:sqlite` itself.
    expect(err.replace(SQLITE_IS_YOUNG, '')).toBe('');
    for (const line of expected) expect(out).toContain(line);
  } finally {
    await started?.stop();
  }
}
