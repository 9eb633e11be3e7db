import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../infra/system-clock.ts';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import { openTestStore } from '../../support/test-store.ts';
import { killEvent } from '../../support/kill-writer.ts';
import { ANY } from '../../../core/streams/api.ts';
import { compareCopies } from './copies.ts';
import { Member } from './member.ts';
import { Subscriber } from './subscriber.ts';

const folder = mkdtempSync(join(tmpdir(), 'skua-judges-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const never = () => false;

describe('the comparison of copies', () => {
  const [original, same, shorter] = ['original', 'same', 'shorter'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const idOf = (number: number) => `02000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
  const write = async (root: string, from: number, to: number): Promise<void> => {
    const open = await openTestStore({
      storage: new FilesystemStorage({ root }),
      clock: systemClock,
      seed: 1,
      chunkSizeBytes: 131_072,
    });
    for (let i = from; i < to; i++) await open.store.append('kept-1', ANY, [killEvent(idOf(i))]);
    await open.close();
  };

  beforeAll(async () => {
    await write(original, 0, 20);
    cpSync(original, same, { recursive: true });
    cpSync(original, shorter, { recursive: true });
    await write(original, 20, 30);
  });

  test('takes a copy that ends earlier for one', async () => {
    const report = await compareCopies([original, same, shorter], never);
    expect(report.problems).toEqual([]);
    expect(report.records[0]).toBeGreaterThan(report.records[1]!);
    expect(report.ends[1]).toBe(report.ends[2]);
  });

  test('finds a record that differs, and one that is missing', async () => {
    const other = join(folder, 'other');
    cpSync(shorter, other, { recursive: true });
    // The same length, and other ids.
    await write(other, 100, 110);
    expect((await compareCopies([original, other], never)).problems.join()).toMatch(/differs in/);
  });

  test('finds a byte that was changed', async () => {
    const damaged = join(folder, 'damaged');
    cpSync(original, damaged, { recursive: true });
    const chunk = join(damaged, 'chunk-000000.000000');
    const bytes = readFileSync(chunk);
    const at = bytes.indexOf(Buffer.from('kept-1'), 4_000);
    bytes[at + 5] = '2'.charCodeAt(0);
    writeFileSync(chunk, bytes);
    expect((await compareCopies([original, damaged], never)).problems).not.toEqual([]);
  });
});

describe('a subscriber', () => {
  /** What a member sends, and what the subscriber thinks of it. */
  async function problemsOf(...events: readonly (readonly [number, number])[]): Promise<string[]> {
    const text = events
      .map(
        ([eventNumber, position]) =>
          `id: ${position}/${position}\ndata: ${JSON.stringify({ streamId: 'kept-0', eventNumber, eventId: `id-${eventNumber}`, position: `${position}/${position}` })}\n\n`,
      )
      .join('');
    const sent = Promise.withResolvers<void>();
    const server = createServer((_, response) => {
      response.writeHead(200).end(text, () => sent.resolve());
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const member = new Member({
      name: 'm',
      host: '127.0.0.1',
      port: (server.address() as AddressInfo).port,
      folder: '',
      words: [],
    });
    const subscriber = new Subscriber(member, null);
    const running = subscriber.run();
    await sent.promise;
    while (subscriber.events < events.length) await systemClock.sleep(1);
    subscriber.stop();
    await running;
    await new Promise((resolve) => {
      server.close(resolve);
    });
    const ids = Array.from({ length: 3 }, (_, number) => `id-${number}`);
    return [...subscriber.problems, ...[subscriber.missing('kept-0', ids) ?? []].flat()];
  }

  test('has nothing against every event once and in order', async () => {
    expect(await problemsOf([0, 100], [1, 200], [2, 300])).toEqual([]);
  });

  test.each([
    [
      'one is missing',
      [
        [0, 100],
        [2, 300],
      ],
    ],
    [
      'one comes twice',
      [
        [0, 100],
        [1, 200],
        [1, 200],
        [2, 300],
      ],
    ],
    [
      'two change places',
      [
        [0, 100],
        [2, 300],
        [1, 200],
      ],
    ],
    [
      'the last is missing',
      [
        [0, 100],
        [1, 200],
      ],
    ],
  ] as const)('says that %s', async (_, events) => {
    expect(await problemsOf(...events)).not.toEqual([]);
  });
});
