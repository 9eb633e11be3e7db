import { describe, expect, test } from 'vitest';
import { ANY } from '../../../core/streams/api.ts';
import type { AuditEntry } from '../../../core/ports/audit.ts';
import { newEvent } from '../../attributes/world.ts';
import { AS, secured } from '../secured.ts';
import type { FlatContext } from '../../support/app-context.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

function world(context: Partial<FlatContext> = {}) {
  const h = secured(context);
  const set = (body: unknown, as: Record<string, string> = AS.admin) =>
    h.send('POST', '/admin/indexes', { ...as, ...JSON_TYPE }, JSON.stringify(body));
  const get = (as: Record<string, string> = AS.admin) => h.get('/admin/indexes', 'application/json', as);
  return { ...h, set, get };
}

describe('the setting of attribute indexes', () => {
  test('is that of a log without one, until it is changed in part', async () => {
    const { get, set, store } = world();
    expect((await get()).json()).toMatchObject({ setting: { names: true, correlations: false, tags: false } });
    const changed = await set({ tags: true });
    expect(changed.status).toBe(200);
    expect(changed.json()).toMatchObject({ setting: { names: true, correlations: false, tags: true } });
    expect((await set({ names: false, tags: true })).json()).toMatchObject({
      setting: { names: false, correlations: false, tags: true },
    });
    expect((await get()).json()).toMatchObject({ setting: { names: false, correlations: false, tags: true } });
    // What is so already is not written again.
    await set({ names: false });
    expect(store.log.filter(({ stream }) => stream === '$attribute-indexes')).toHaveLength(2);
  });

  test('is that of the newest event that is one, where another program has appended to its stream', async () => {
    const { get, set, store } = world();
    await set({ tags: true });
    await store.append('$attribute-indexes', ANY, [newEvent('other'), newEvent('other')]);
    expect((await get()).json()).toMatchObject({ setting: { names: true, correlations: false, tags: true } });
    expect((await set({ names: false })).json()).toMatchObject({
      setting: { names: false, correlations: false, tags: true },
    });
  });

  test('is refused where it says something else', async () => {
    const { set } = world();
    for (const body of [[], 'tags', {}, { tags: 'on' }, { tags: true, more: true }])
      expect((await set(body)).status).toBe(400);
  });

  test('is for administrators, and told to the audit', async () => {
    const entries: AuditEntry[] = [];
    const { set, get } = world({
      audit: {
        record: (entry) => {
          entries.push(entry);
        },
      },
    });
    expect((await set({ tags: true }, AS.ops)).status).toBe(403);
    expect((await get(AS.ops)).status).toBe(403);
    await set({ tags: true });
    const told = entries.filter(({ action }) => action === 'index.set');
    expect(told.map(({ outcome, user, details }) => [outcome, user, details])).toMatchObject([
      ['refused', 'olga', null],
      ['success', 'ada', { tags: true }],
    ]);
  });
});
