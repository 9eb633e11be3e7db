import type { Client, RecordedEvent } from '../../local/client/index.ts';

/**
 * A shortened contract of event stores, for runtimes that have no test runner: it uses the web platform alone, is
 * bundled with the client, and throws at the first thing that is not as it should be.
 */
export async function shortContract(store: Client, isSkuaError: (error: unknown) => boolean): Promise<string> {
  let checks = 0;
  const same = (what: string, found: unknown, expected: unknown): void => {
    checks++;
    const [left, right] = [JSON.stringify(found), JSON.stringify(expected)];
    if (left !== right) throw new Error(`${what}: ${left}, where ${right} was expected`);
  };
  const all = async <T>(events: AsyncIterable<T>): Promise<T[]> => {
    const found: T[] = [];
    for await (const event of events) found.push(event);
    return found;
  };
  const codeOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => null,
      (error: unknown) => (isSkuaError(error) ? (error as { code: unknown }).code : String(error)),
    );
  const run = String(Date.now());
  const [one, two] = [`runtime${run}-1`, `runtime${run}-2`];

  const id = `60000000-0000-4000-8000-${run.slice(-12).padStart(12, '0')}`;
  const first = await store.append(one, { type: 'A', data: { ä: ['🐦', null] }, id }, { expected: 'none' });
  same('first', [first.version, first.firstVersion, first.isRepeat], [0, 0, false]);
  same('a repeat', (await store.append(one, { type: 'A', data: {}, id }, { expected: 'none' })).isRepeat, true);
  same('a conflict', await codeOf(store.append(one, { type: 'B' }, { expected: 'none' })), 'wrong_expected_version');
  const both = await store.appendToStreams([
    { stream: one, events: [{ type: 'B', data: Uint8Array.of(0, 254, 255) }], expected: 0 },
    { stream: two, events: [{ type: 'C', data: 7, metadata: { $correlationId: run } }], expected: 'none' },
  ]);
  same(
    'several',
    both.streams.map(({ stream, version }) => [stream, version]),
    [
      [one, 1],
      [two, 0],
    ],
  );
  same(
    'several again',
    await codeOf(store.appendToStreams([{ stream: two, events: [{ type: 'C' }], expected: 'none' }])),
    'consistency_violation',
  );

  const shown = ({ version, type, data }: RecordedEvent): unknown => [
    version,
    type,
    data instanceof Uint8Array ? [...data] : data,
  ];
  const events = await all(store.read(one));
  same('read', events.map(shown), [
    [0, 'A', { ä: ['🐦', null] }],
    [1, 'B', [0, 254, 255]],
  ]);
  same('backward', (await all(store.read(one, { direction: 'backward', limit: 1 }))).map(shown), [
    [1, 'B', [0, 254, 255]],
  ]);
  const found = await all(store.readAll({ category: `runtime${run}` }));
  same(
    'by category',
    found.map(({ stream, version }) => `${version}@${stream}`),
    [`0@${one}`, `1@${one}`, `0@${two}`],
  );
  same('by correlation', (await all(store.readAll({ correlation: run }))).map(shown), [[0, 'C', 7]]);
  same('none', await codeOf(all(store.read(`${one}-none`))), 'stream_not_found');

  const ending = new AbortController();
  const seen: number[] = [];
  let caughtUp = 0;
  for await (const { version } of store.subscribe({
    stream: one,
    after: 0,
    signal: ending.signal,
    onCaughtUp: () => {
      if (caughtUp++ === 0) void store.append(one, { type: 'D', data: 'x'.repeat(100_000) });
    },
  })) {
    seen.push(version);
    if (version === 2) ending.abort();
  }
  same('followed', seen, [1, 2]);

  await store.setMetadata(one, { maxCount: 1, custom: { run } });
  same('metadata', await store.metadata(one), { version: 0, maxCount: 1, custom: { run } });
  same(
    'retention',
    (await all(store.read(one))).map(({ version }) => version),
    [2],
  );
  const late = AbortSignal.timeout(60_000);
  await store.delete(one, { hard: true, signal: late });
  same('deleted', await store.info(one), { stream: one, state: 'tombstoned', version: null });
  same('gone', await codeOf(store.append(one, { type: 'A' })), 'stream_deleted');
  same('a reason', await codeOf(store.info(two, { signal: AbortSignal.abort('enough') })), 'enough');
  await store.close();
  same('closed', await codeOf(store.info(two)), 'store_closed');
  return `${checks} checks`;
}
