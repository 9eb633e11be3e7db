import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { runBy } from './run.ts';
import { startedNode } from './spawn.ts';
import type { Started } from './spawn.ts';
import { FakeIo } from './support.ts';

/** `skua redact` at a real node. */

let node: Started;
let stream = '';
let made = 0;
beforeAll(async () => {
  node = await startedNode(['--insecure', '--mem-db']);
});
afterAll(() => node.stop());
beforeEach(async () => {
  stream = `orders-${++made}`;
  const events = [0, 1, 2].map((i) => ({ eventId: idOf(i), eventType: 'paid', data: { card: i } }));
  const { status } = await fetch(`${node.url}/streams/${stream}`, {
    method: 'POST',
    headers: { 'content-type': 'application/vnd.eventstore.events+json' },
    body: JSON.stringify(events),
  });
  expect(status).toBe(201);
});

const idOf = (i: number) => `${String(made).padStart(8, '0')}-0000-4000-8000-00000000000${i}`;

/** `typed`: what is typed on a terminal; null for none. */
function run(words: readonly string[], typed: string | null = null) {
  const stdin = Object.assign(new PassThrough(), { isTTY: typed !== null });
  if (typed !== null) stdin.end(typed);
  return runBy(Object.assign(new FakeIo({ env: { SKUA_NODE: node.url } }), { stdin }), ['redact', stream, ...words]);
}

async function dataOf(number: number): Promise<string> {
  const reply = await fetch(`${node.url}/streams/${stream}/${number}`, {
    headers: { accept: 'application/octet-stream' },
  });
  // Appended JSON is stored with indentation.
  return (await reply.text()).replaceAll(/\s/g, '');
}

describe('skua redact', () => {
  test('shows what it would take', async () => {
    const { code, out } = await run(['--event', '1', '--reason', 'card', '--preview']);
    expect(code).toBe(0);
    expect(out).toMatch(
      new RegExp(String.raw`^${stream}: 1 event\n +event +type .*\n +1 +paid +${idOf(1)} .*\nNothing was changed\.\n$`),
    );
    expect(await dataOf(1)).toBe('{"card":1}');
    const shown = await run(['--id', idOf(2), '--reason', 'card', '--preview', '--json']);
    expect(JSON.parse(shown.out)).toMatchObject({
      stream,
      events: [{ number: 2, wasRedacted: false }],
      position: null,
    });
  });

  test('asks on a terminal, and needs --yes elsewhere', async () => {
    const words = ['--event', '1', '--event', '2', '--reason', 'card'];
    for (const typed of [null, 'y\n', ''])
      expect(await run(words, typed)).toMatchObject({ code: 4, err: expect.stringContaining('Nothing was changed.') });
    expect(await dataOf(1)).toBe('{"card":1}');
    const done = await run(words, 'yes\n');
    expect([done.code, done.out]).toEqual([0, expect.stringContaining('until the next scavenge')]);
    expect([await dataOf(0), await dataOf(1), await dataOf(2)]).toEqual(['{"card":0}', '', '']);
    // There is nothing to agree to.
    expect(await run(words)).toMatchObject({ code: 0, out: expect.stringContaining('redacted before') });
  });

  test('reports for programs', async () => {
    const { code, out } = await run(['--event', '0', '--reason', 'card', '--metadata', '$who', '--yes', '--json']);
    expect([code, JSON.parse(out)]).toEqual([
      0,
      {
        stream,
        events: [expect.objectContaining({ number: 0 })],
        position: expect.any(Number),
        remains: expect.any(String),
      },
    ]);
    expect(await dataOf(0)).toBe('');
  });

  test.each<[readonly string[], number, string]>([
    [['--event', '0', '--yes'], 2, '--reason is missing'],
    [['--reason', 'r', '--yes'], 2, 'either by number'],
    [['--event', '0', '--id', 'x', '--reason', 'r', '--yes'], 2, 'either by number'],
    [['--event', '-1', '--reason', 'r', '--yes'], 2, '--event'],
    [['--event', 'x', '--reason', 'r', '--yes'], 2, '--event must be the number of an event'],
    [['--id', 'x', '--reason', 'r', '--yes'], 1, 'UUIDs'],
    [['--event', '9', '--reason', 'r', '--yes'], 1, 'event 9'],
    [['--event', '0', '--reason', 'r', '--metadata', 'who', '--yes'], 1, 'begin with $'],
  ])('refuses %j', async (words, code, says) => {
    const refused = await run(words);
    expect([refused.code, refused.err]).toEqual([code, expect.stringContaining(says)]);
    expect(await dataOf(0)).toBe('{"card":0}');
  });
});
