import { globSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { describe, expect, test } from 'vitest';
import { METRICS } from '../../../local/metrics/table.ts';
import { ROOT } from '../spawn.ts';

const TABLE = 'local/metrics/table.ts';
const CALL = /\b(?:meter|#meter|sink|metrics)\.(?:count|gauge|observe|total|clear|summaryOf)\(\s*'([^']+)'/g;
const NAME = /'(eventstore_[a-z0-9_]+)'/g;

/** Names by the file that uses them. */
function usedNames(): Map<string, string> {
  const used = new Map<string, string>();
  for (const file of globSync('{core,handlers,local,infra}/**/*.ts', { cwd: ROOT })) {
    if (path.normalize(file) === path.normalize(TABLE)) continue;
    const text = readFileSync(path.join(ROOT, file), 'utf8');
    for (const find of [CALL, NAME]) for (const [, name] of text.matchAll(find)) used.set(name!, file);
  }
  return used;
}

describe('the table of metrics', () => {
  const used = usedNames();

  test('has every name that is used, and none that is not', () => {
    expect(
      [...used].filter(([name]) => !Object.hasOwn(METRICS, name)).map(([name, file]) => `${name} in ${file}`),
    ).toEqual([]);
    expect(Object.keys(METRICS).filter((name) => !used.has(name))).toEqual([]);
    expect(used.size).toBeGreaterThan(40);
  });

  test.each(Object.entries(METRICS))('%s is well formed', (name, { kind, help, labels = [], buckets }) => {
    expect(name).toMatch(/^eventstore_[a-z][a-z0-9_]*$/);
    expect(name.endsWith('_total') && kind !== 'counter' ? ['eventstore_scavenge_chunks_total'] : [name]).toContain(
      name,
    );
    if (kind === 'counter') expect(name).toMatch(/_total$/);
    expect(help).toMatch(/^[A-Z].*\.$/);
    expect(labels.includes('range')).toBe(kind === 'recent-max');
    expect(buckets !== undefined).toBe(kind === 'histogram');
    if (buckets !== undefined) expect([...buckets].sort((a, b) => a - b)).toEqual(buckets);
  });
});
