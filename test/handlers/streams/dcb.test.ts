import { describe, expect, it } from 'vitest';
import { encodeText } from '../../../core/base/text.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { newEvent, openIndexed, set } from '../../attributes/world.ts';
import { ANY } from '../../../core/streams/api.ts';
import { harness } from '../harness.ts';
import { AS, secured } from '../secured.ts';

async function world() {
  const open = await openIndexed({ storage: new MemoryStorage(), seed: 1 });
  await set(open.store, { tags: true });
  await open.attributes!.idle();
  const h = harness({ store: open.store });
  const append = (body: unknown) =>
    h.send('POST', '/dcb/append', { 'content-type': 'application/json' }, JSON.stringify(body));
  const read = (query: unknown, options?: unknown) =>
    h.get(
      `/dcb/read?query=${encodeURIComponent(JSON.stringify(query))}${options === undefined ? '' : `&options=${encodeURIComponent(JSON.stringify(options))}`}`,
      'application/json',
    );
  return { open, append, read };
}

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
