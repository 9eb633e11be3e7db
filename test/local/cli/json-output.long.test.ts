import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../../local/commands/all-commands.ts';
import { bySize } from '../../support/run-size.ts';
import { ran, startedNode } from '../spawn.ts';
import type { Started } from '../spawn.ts';

/** What every command prints with --json: one JSON text, or one a line, and a line's end behind it. */

let folder: string;
let node: Started;
const at = (name: string) => path.join(folder, name);

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-json-'));
  writeFileSync(at('route.js'), 'function route() { return { stream: "s" }; }');
  writeFileSync(at('payload.json'), '{}');
  writeFileSync(at('password'), 'long enough for a test');
  node = await startedNode(['--db', at('db'), '--chunk-size', '131072']);
  const reply = await fetch(`${node.url}/streams/s`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'es-eventtype': 'made',
      'es-eventid': '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11',
    },
    body: '{}',
  });
  expect(reply.status).toBe(201);
  expect(
    (
      await fetch(`${node.url}/subscriptions/s/g`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json', authorization: `Basic ${btoa('admin:changeit')}` },
        body: '{}',
      })
    ).status,
  ).toBe(201);
});

afterAll(async () => {
  await node.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** In this order; words that stand for files are below the folder of the test. Those of one command may be several. */
const CALLS: readonly {
  readonly words: string;
  readonly code?: number;
  readonly isSlow?: boolean;
  readonly before?: string;
}[] = [
  { words: 'scavenge start --dry-run', isSlow: true },
  { words: 'scavenge start --wait' },
  { words: 'scavenge start --watch', isSlow: true },
  { words: 'scavenge status' },
  { words: 'scavenge watch' },
  { words: 'auto-scavenge configure @cron' },
  { words: 'auto-scavenge status' },
  { words: 'auto-scavenge pause' },
  { words: 'auto-scavenge resume' },
  { words: 'cluster status' },
  { words: 'explain s' },
  { words: 'redact s --event 0 --reason r --yes' },
  { words: 'read s' },
  { words: 'streams --type made' },
  { words: 'indexes status' },
  { words: 'indexes set --tags on' },
  { words: 'backup copy --full --to @copy' },
  { words: 'backup copy --differential --to @copy', isSlow: true },
  { words: 'backup copy --snapshot' },
  { words: 'backup key @key' },
  { words: 'backup create --repository @repo --key-file @key' },
  { words: 'backup list --repository @repo --key-file @key' },
  { words: 'backup verify --repository @repo --key-file @key' },
  { words: 'backup drill --repository @repo --key-file @key --scratch @', isSlow: true },
  { words: 'backup prune --repository @repo --key-file @key --erased' },
  { words: 'prove-erased --stream s --repository @repo --key-file @key', code: 1 },
  { words: 'restore --from @repo --key-file @key --db @restored' },
  { words: 'restore --from @copy --db @restored-2', isSlow: true },
  { words: 'prove-erased --stream s --db @restored', code: 1 },
  { words: 'explain s --db @restored', isSlow: true },
  { words: 'scavenge offline @restored --dry-run' },
  { words: 'scavenge offline @restored', isSlow: true },
  { words: 'verify @restored' },
  { words: 'inspect @restored' },
  { words: 'proof verify --db @restored --anchor @anchor', before: 'proof export --db @restored --out @anchor' },
  { words: 'cluster reset --yes --from @restored-2 --storage @log', isSlow: true },
  { words: 'user reset-password kim --db @restored --administrator --password-file @password' },
  { words: 'user list --db @restored' },
  { words: 'subscriptions list' },
  { words: 'subscriptions info s g' },
  { words: 'subscriptions replay-parked s g' },
  { words: 'subscriptions reset s g --from start' },
  { words: 'subscriptions restart' },
  { words: 'subscriptions delete s g' },
  { words: 'webhook test @route.js @payload.json' },
  { words: 'webhook send @/webhook/none @payload.json', code: 1 },
  { words: 'demo --db @db', isSlow: true },
];

/**
 * Nothing to stop is an error, which is told in words: what it prints else is in
 * test/local/scavenge/commands.long.test.ts.
 */
const ELSEWHERE = ['scavenge stop'];

function wordsOf(text: string): string[] {
  const takesNode =
    /^(scavenge (?!offline)|auto-scavenge|backup (copy|create)|cluster status|subscriptions|redact|read|streams|indexes|demo)/.test(
      text,
    ) || text === 'explain s';
  return [...plainWords(text), '--json', ...(takesNode ? ['--node', node.url] : [])];
}

function plainWords(text: string): string[] {
  return text.split(' ').map((word) => {
    if (word === '@cron') return '0 0 * * *';
    if (word.startsWith('@/')) return node.url + word.slice(1);
    return word.startsWith('@') ? at(word.slice(1)) : word;
  });
}

describe('JSON on standard output', () => {
  test('every command that has --json is here', () => {
    const withJson = COMMANDS.filter(({ options }) => 'json' in options).map(({ name }) => name);
    const called = withJson.filter((name) => CALLS.some(({ words }) => words === name || words.startsWith(`${name} `)));
    expect([...called, ...ELSEWHERE].toSorted()).toEqual(withJson.toSorted());
  });

  test.for(CALLS.filter(({ isSlow }) => bySize(isSlow !== true, true)))(
    '$words',
    async ({ words, before, code = 0 }) => {
      if (before !== undefined) expect(await ran(plainWords(before))).toMatchObject({ code: 0 });
      const ended = await ran(wordsOf(words));
      expect(ended).toMatchObject({ code, out: expect.stringMatching(/[}\]]\n$/) });
      expect(ended.out).not.toContain('\n\n');
      const texts = ended.out.startsWith('{\n') ? [ended.out] : ended.out.trimEnd().split('\n');
      for (const text of texts) expect(JSON.parse(text)).toBeTypeOf('object');
    },
  );
});
