import { describe, expect, test } from 'vitest';
import { encodeText } from '../../../core/base/text.ts';
import type { AuditEntry } from '../../../core/ports/audit.ts';
import { ANY } from '../../../core/streams/api.ts';
import type { RedactionDocument } from '../../../handlers/documents/redaction.ts';
import { AS, secured } from '../secured.ts';
import type { FlatContext } from '../../support/app-context.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const MARKS = '%24redactions';

function world(context: Partial<FlatContext> = {}) {
  const h = secured(context);
  const redact = (body: unknown, query = '', as: Record<string, string> = AS.admin) =>
    h.send('POST', `/admin/redact${query}`, { ...as, ...JSON_TYPE }, JSON.stringify(body));
  const marks = async () => {
    const reply = await h.get(`/streams/${MARKS}`, 'application/x-ndjson', AS.admin);
    return reply.status === 404
      ? []
      : reply.text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line).data as string)
          .map((data) => JSON.parse(data));
  };
  return { ...h, redact, marks };
}

async function filled(context: Partial<FlatContext> = {}) {
  const h = world(context);
  await h.store.append(
    'orders',
    ANY,
    [1, 2, 3].map((card) => ({
      id: h.id(),
      type: 'made',
      isJson: true,
      data: encodeText(JSON.stringify({ card })),
      metadata: new Uint8Array(0),
    })),
  );
  const ids = h.store.log.filter(({ stream }) => stream === 'orders').map(({ id }) => id);
  return { ...h, ids };
}

describe('redaction', () => {
  test('says what it would take, takes it, and says what remains', async () => {
    const { redact, marks, ids } = await filled();
    const wanted = { stream: 'orders', events: [2, 0], reason: 'card number' };
    const shown = (await redact(wanted, '?preview=true')).json() as RedactionDocument;
    expect(shown).toMatchObject({ stream: 'orders', position: null, remains: 'Nothing was changed.' });
    expect(shown.events.map(({ number, id, wasRedacted }) => [number, id, wasRedacted])).toEqual([
      [2, ids[2], false],
      [0, ids[0], false],
    ]);
    expect(shown.events[0]).toMatchObject({ type: 'made', dataBytes: '{"card":3}'.length, metadataBytes: 0 });
    expect(await marks()).toEqual([]);

    const reply = await redact(wanted);
    expect(reply.status).toBe(200);
    const done = reply.json() as RedactionDocument;
    expect(done.events).toEqual(shown.events);
    expect(done.position).toBeGreaterThan(0);
    expect(done.remains).toMatch(/until the next scavenge .* backups/);
    expect(await marks()).toMatchObject(
      [
        { stream: 'orders', number: 0, id: ids[0], by: 'ada', reason: 'card number' },
        { stream: 'orders', number: 2, id: ids[2], by: 'ada', reason: 'card number' },
      ].toSorted((a, b) => b.number - a.number),
    );
  });

  test('takes ids, and metadata that begin with $', async () => {
    const { redact, marks, ids } = await filled();
    const done = await redact({ stream: 'orders', ids: [ids[1]!.toUpperCase()], reason: 'r', metadata: ['$who'] });
    expect(done.json()).toMatchObject({ events: [{ number: 1 }] });
    expect(await marks()).toMatchObject([{ number: 1, metadata: ['$who'] }]);
  });

  test.each<[unknown, string, number]>([
    [{ events: [0], reason: 'r' }, 'bad_request', 400],
    [{ stream: 'orders', reason: 'r' }, 'bad_request', 400],
    [{ stream: 'orders', events: [0], ids: ['6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11'], reason: 'r' }, 'bad_request', 400],
    [{ stream: 'orders', events: ['0'], reason: 'r' }, 'bad_request', 400],
    [{ stream: 'orders', events: [-1], reason: 'r' }, 'bad_request', 400],
    [{ stream: 'orders', events: [0.5], reason: 'r' }, 'bad_request', 400],
    [{ stream: 'orders', events: 0, reason: 'r' }, 'bad_request', 400],
    [{ stream: 'orders', ids: ['x'], reason: 'r' }, 'bad_request', 400],
    [{ stream: 'orders', events: [0] }, 'bad_request', 400],
    [{ stream: 'orders', events: [0], reason: ' ' }, 'bad_request', 400],
    [{ stream: 'orders', events: [0], reason: 'r', metadata: ['who'] }, 'bad_request', 400],
    [{ stream: 'orders', events: [0], reason: 'r', metadata: [1] }, 'bad_request', 400],
    [[], 'bad_json', 400],
    [null, 'bad_json', 400],
    [{ stream: 'orders', events: [7], reason: 'r' }, 'event_not_found', 404],
    [{ stream: 'nothing', events: [0], reason: 'r' }, 'stream_not_found', 404],
    [{ stream: '$redactions', events: [0], reason: 'r' }, 'not_redactable', 409],
  ])('is refused for %j', async (body, code, status) => {
    const { redact, marks } = await filled();
    const reply = await redact(body);
    expect([reply.status, reply.json()]).toEqual([status, expect.objectContaining({ code })]);
    expect(await marks()).toEqual([]);
  });

  test('has limits, and takes preview as true or false alone', async () => {
    const { redact, marks } = await filled();
    const wanted = { stream: 'orders', events: [0], reason: 'r' };
    expect((await redact({ ...wanted, events: Array.from({ length: 1_001 }, (_, i) => i) })).status).toBe(400);
    expect((await redact({ ...wanted, reason: 'r'.repeat(70_000) })).status).toBe(413);
    expect((await redact(wanted, '?preview=yes')).status).toBe(400);
    expect(await marks()).toEqual([]);
  });

  test('is for administrators, and told to the audit', async () => {
    const entries: AuditEntry[] = [];
    const { redact, send, marks } = await filled({
      audit: {
        record: (entry) => {
          entries.push(entry);
        },
      },
    });
    const wanted = { stream: 'orders', events: [1], reason: 'card number' };
    for (const as of [AS.anonymous, AS.plain, AS.ops])
      expect([401, 403]).toContain((await redact(wanted, '', as)).status);
    expect(await marks()).toEqual([]);
    await redact(wanted, '?preview=true');
    await redact(wanted);
    // Past the route: who appends a mark has redacted, too.
    await send(
      'POST',
      `/streams/${MARKS}`,
      { ...AS.admin, ...JSON_TYPE, 'es-eventtype': '$redaction', 'es-eventid': '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11' },
      '{}',
    );
    const told = entries.filter(({ action }) => action === 'event.redact');
    expect(told.map(({ outcome, user, target }) => [outcome, user, target])).toEqual([
      ['refused', null, null],
      ['refused', 'kim', null],
      ['refused', 'olga', null],
      ['success', 'ada', 'orders'],
      ['success', 'ada', 'orders'],
      [expect.anything(), 'ada', '$redactions'],
    ]);
    expect(told.slice(3, 5).map(({ details }) => details)).toEqual([
      { events: ['1'], reason: 'card number', preview: true },
      { events: ['1'], reason: 'card number' },
    ]);
  });
});
