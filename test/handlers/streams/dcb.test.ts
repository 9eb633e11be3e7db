import { describe, expect, it } from 'vitest';
import { ByteBudget } from '../../../core/base/byte-budget.ts';
import { encodeText } from '../../../core/base/text.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { newEvent, openIndexed, set } from '../../attributes/world.ts';
import { ANY } from '../../../core/streams/api.ts';
import { installFiles, unpackSet } from '../../support/fixtures.ts';
import { DEFAULT_OPTIONS } from '../../../handlers/http/context.ts';
import { harness, ORIGIN, type Reply } from '../harness.ts';
import type { FlatContext } from '../../support/app-context.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { openTestStore } from '../../support/test-store.ts';
import { AS, secured } from '../secured.ts';

async function world(context: Partial<FlatContext> = {}) {
  const open = await openIndexed({ storage: new MemoryStorage(), seed: 1 });
  await set(open.store, { tags: true });
  await open.attributes!.idle();
  return { open, ...over(open, context) };
}

function over(open: Awaited<ReturnType<typeof openIndexed>>, context: Partial<FlatContext> = {}) {
  const h = harness({ store: open.store, ...context });
  const append = (body: unknown) =>
    h.send('POST', '/dcb/append', { 'content-type': 'application/json' }, JSON.stringify(body));
  const read = (query: unknown, options?: unknown) =>
    h.get(
      `/dcb/read?query=${encodeURIComponent(JSON.stringify(query))}${options === undefined ? '' : `&options=${encodeURIComponent(JSON.stringify(options))}`}`,
      'application/json',
    );
  return { append, read, h };
}

/** Where a reply leads on. */
function nextOf(reply: Reply): string | undefined {
  return /^<(.*)>; rel="next"$/.exec(reply.headers.get('link') ?? '')?.[1]!.replace(ORIGIN, '');
}

const READ = '/dcb/read?query=%7B%7D';

const SEAT = { type: 'Enrolled', tags: ['course:1'], data: '{"student":7}' };
const QUERY = { items: [{ types: ['Enrolled'], tags: ['course:1'] }] };

describe('appends on a condition over HTTP', () => {
  it('are written, or the body says that they were not', async () => {
    const { open, append, read } = await world();
    const first = await append({ events: SEAT, condition: { failIfEventsMatch: QUERY } });
    expect([first.status, first.json()]).toMatchObject([200, { appendConditionFailed: false, isRepeat: false }]);
    const refused = await append({ events: [SEAT], condition: { failIfEventsMatch: QUERY } });
    expect([refused.status, refused.json()]).toMatchObject([
      200,
      { appendConditionFailed: true, matched: { stream: 'dcb', number: 0, position: first.json().position } },
    ]);
    const seen = await read(QUERY);
    expect(seen.json()).toMatchObject([
      { type: 'Enrolled', tags: ['course:1'], data: '{"student":7}', position: first.json().position },
    ]);
    const after = Number(seen.headers.get('es-position'));
    const next = await append({ events: [SEAT], condition: { failIfEventsMatch: QUERY, after } });
    expect(next.json().appendConditionFailed).toBe(false);
    const again = await append({ events: [SEAT], condition: { failIfEventsMatch: QUERY, after } });
    expect(again.json().appendConditionFailed).toBe(true);
    await open.close();
  });

  it('read redacted events as what they are', async () => {
    const { open, append, read } = await world();
    await append({ events: [SEAT, { ...SEAT, data: '{"student":8}' }] });
    const [seat] = (await read(QUERY)).json();
    const { stream, number, id, position } = seat;
    const said = { stream, number, id, position, by: 'ann', reason: 'a card' };
    const mark = { ...newEvent('$redaction'), data: encodeText(JSON.stringify(said)) };
    await open.store.append('$redactions', ANY, [mark]);
    const [redacted, other] = (await read(QUERY)).json();
    expect(redacted).toEqual({ ...seat, data: '', isRedacted: true });
    expect(other).not.toHaveProperty('isRedacted');
    const refused = await append({ events: SEAT, condition: { failIfEventsMatch: QUERY } });
    expect(refused.json()).toMatchObject({ appendConditionFailed: true, matched: { position } });
    await open.close();
  });

  it('read what matches any item, in either direction, and say how far where nothing matches', async () => {
    const { open, append, read } = await world();
    const events = ['a', 'b', 'c', 'a'].map((tag, i) => ({
      type: `T${i % 2}`,
      tags: [tag],
      data: { i },
      stream: `s-${tag}`,
    }));
    await append({ events });
    const dataOf = (body: { json(): { data: string }[] }): string[] => body.json().map(({ data }) => data);
    expect(dataOf(await read({ items: [{ tags: ['c'] }, { types: ['T1'] }] }))).toEqual([
      '{"i":1}',
      '{"i":2}',
      '{"i":3}',
    ]);
    expect(dataOf(await read({ items: [{ tags: ['a'] }] }, { backwards: true, limit: 1 }))).toEqual(['{"i":3}']);
    const all = await read({ items: [] });
    expect(all.json()).toHaveLength(4);
    const from = all.json()[2].position;
    expect(dataOf(await read({}, { from }))).toEqual(['{"i":2}', '{"i":3}']);
    const none = await read({ items: [{ tags: ['none'] }] });
    expect(none.json()).toEqual([]);
    expect(Number(none.headers.get('es-position'))).toBe(open.store.end - 1);
    await open.close();
  });

  it.each([undefined, 7])('lead on where an answer is full: with a limit of %s', async (limit) => {
    const { open, append, read, h } = await world({ options: { ...DEFAULT_OPTIONS, readPageBytesMax: 2_000 } });
    const events = Array.from({ length: 10 }, (_, i) => ({ ...SEAT, data: `${i}${'x'.repeat(300)}` }));
    await append({ events });
    const numbers: number[] = [];
    let replies = 0;
    let reply: Reply;
    for (let next: string | undefined = undefined; ; next = nextOf(reply)) {
      reply = await (next === undefined ? read(QUERY, { limit }) : h.get(next, 'application/json'));
      replies++;
      const seen = reply.json() as { number: number; position: number }[];
      expect(seen.length).toBeLessThanOrEqual(5);
      numbers.push(...seen.map(({ number }) => number));
      if (!reply.headers.has('link')) break;
      // What lies behind what was looked at counts.
      const after = Number(reply.headers.get('es-position'));
      const condition = { failIfEventsMatch: QUERY, after };
      expect((await append({ events: SEAT, condition })).json().appendConditionFailed).toBe(true);
    }
    expect(numbers).toEqual(Array.from({ length: limit ?? 10 }, (_, i) => i));
    expect(replies).toBeGreaterThan(1);
    await open.close();
  });

  it('lead on within an explicit transaction that has more events than an answer', async () => {
    const storage = new MemoryStorage();
    await installFiles(storage, unpackSet('transactions-1-before'));
    const open = await openTestStore({ storage, seed: 1 });
    await open.attributes!.idle();
    const { h: whole } = over(open);
    const all = (await whole.get(READ, 'application/json')).json() as { id: string; position: number }[];
    const commits = all.map(({ position }) => position);
    expect(new Set(commits).size).toBeLessThan(commits.length);
    const { h } = over(open, { options: { ...DEFAULT_OPTIONS, readPageBytesMax: 1 } });
    const seen: { id: string }[] = [];
    for (let next: string | undefined = READ; next !== undefined;) {
      const reply: Reply = await h.get(next, 'application/json');
      seen.push(...(reply.json() as { id: string }[]));
      expect(seen.length).toBeLessThanOrEqual(all.length);
      next = nextOf(reply);
    }
    expect(seen).toEqual(all);
    await open.close();
  });

  it('backward are whole, or refused', async () => {
    const { open, append, read } = await world({ options: { ...DEFAULT_OPTIONS, readPageBytesMax: 2_000 } });
    await append({ events: Array.from({ length: 10 }, () => ({ ...SEAT, data: 'x'.repeat(300) })) });
    const refused = await read(QUERY, { backwards: true });
    expect([refused.status, refused.json()]).toMatchObject([400, { code: 'page_too_large' }]);
    const newest = await read(QUERY, { backwards: true, limit: 3 });
    expect([newest.headers.get('link'), newest.json().map(({ number }: { number: number }) => number)]).toEqual([
      null,
      [9, 8, 7],
    ]);
    await open.close();
  });

  it('take room of replies, and become text in turns where they are long', async () => {
    const budget = new ByteBudget(
      { of: 'replies', totalBytes: 4e6, reserveBytes: 1e6, smallBytes: 262_144, waitersMax: 0, waitMs: 1_000 },
      new ManualClock(),
    );
    const shares = Array.from({ length: 3 }, () => budget.share());
    let asked = 0;
    const { open, append, read } = await world({ replyShareOf: () => shares[asked]! });
    for (let appends = 0; appends < 40; appends++) await append({ events: { ...SEAT, data: 'x'.repeat(25_000) } });
    shares[0]!.release();
    const whole = await read(QUERY);
    expect(whole.json()).toHaveLength(40);
    expect(shares[0]!.heldBytes).toBe(whole.text.length);
    asked++;
    shares[2]!.add(2_500_000);
    expect((await read(QUERY)).status).toBe(503);
    shares[asked]!.release();
    expect((await read(QUERY, { limit: 1 })).status).toBe(200);
    await open.close();
  });

  it('are refused where they can not be read', async () => {
    const { open, append, read } = await world();
    for (const body of [
      {},
      { events: [{}] },
      { events: [{ ...SEAT, tags: 'a' }] },
      { events: [SEAT], condition: {} },
      { events: [{ ...SEAT, stream: '$$s' }] },
    ])
      expect((await append(body)).status).toBe(400);
    expect((await append({ events: [SEAT], condition: { failIfEventsMatch: QUERY, after: 1e9 } })).status).toBe(409);
    expect((await read({ items: 1 })).status).toBe(400);
    await open.close();
  });

  it('ask for the right to read all', async () => {
    const h = secured();
    const body = JSON.stringify({ events: [SEAT], condition: { failIfEventsMatch: QUERY } });
    const headers = { ...AS.plain, 'content-type': 'application/json' };
    expect((await h.send('POST', '/dcb/append', headers, body)).status).toBe(403);
    expect((await h.get('/dcb/read', 'application/json', AS.plain)).status).toBe(403);
    // Unread.
    expect((await h.get('/dcb/read?query=no', 'application/json', AS.plain)).status).toBe(403);
    expect((await h.send('POST', '/dcb/append', headers, 'no')).status).toBe(403);
  });
});
