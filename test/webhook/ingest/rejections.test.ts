import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { REJECTIONS_A_MINUTE, withoutValues } from '../../../core/webhook/ingest/rejections.ts';
import { dataOf, openRig, REJECTIONS, until } from './kit.ts';
import type { Rig } from './kit.ts';

const notes = async (rig: Rig) => (await rig.read(REJECTIONS)).map(dataOf);

describe('refused calls', () => {
  test('are noted with time, status, reason and names of headers', async () => {
    const rig = await openRig();
    rig.active.start('parcels');
    expect(await rig.send('{', { headers: { authorization: 'Bearer very-secret', 'x-request-id': 'r-1' } })).toBe(400);
    await until(async () => (await rig.read(REJECTIONS)).length === 1);
    expect(await notes(rig)).toEqual([
      {
        time: '2026-11-22T00:00:00Z',
        status: 400,
        reason: expect.stringContaining('not JSON'),
        headers: ['content-type', 'authorization', 'x-request-id'],
      },
    ]);
    expect((await rig.read(REJECTIONS))[0]).toMatchObject({ type: '$webhook-rejection', isJson: true });
    expect((await rig.opened.store.streamInfo(REJECTIONS)).metadata).toEqual({ maxCount: 1_000 });
    expect(rig.log.lines).toMatchObject([
      { level: 'warn', message: 'a webhook call was refused', fields: { connectorId: 'parcels', status: 400 } },
    ]);
  });

  test('never show values of headers or secrets, whatever a script throws', async () => {
    const rig = await openRig();
    const secrets = ['the-first-secret'];
    rig.active.start(
      'parcels',
      {
        script:
          'const route = ({ headers }) => { throw new Error(`${headers.authorization} the-first-secret ${headers["x-api-key"]}`); };',
      },
      secrets,
    );
    await rig.send({}, { headers: { authorization: 'Bearer abcdef', 'x-api-key': 'key-123456', 'webhook-id': 'd-1' } });
    await until(async () => (await rig.read(REJECTIONS)).length === 1);
    const [note] = await notes(rig);
    expect(note).toMatchObject({ status: 500, reason: 'Error: … … …', deliveryId: 'd-1' });
    expect(JSON.stringify(rig.log.lines)).not.toMatch(/abcdef|key-123456|the-first-secret/);
  });

  test.each([
    ['a value in another', 'Error: Bearer abcdef', ['Bearer', 'Bearer abcdef'], 'Error: …'],
    ['a value as JSON writes it', String.raw`Error: {"a":"Digest u=\"kim\""}`, ['Digest u="kim"'], 'Error: {"a":"…"}'],
    [
      'a value that was cut, with the place behind it',
      'Error: abcdefgh… (line 1, column 2)',
      ['abcdefghijk'],
      'Error: … (line 1, column 2)',
    ],
    ['the longest beginning counts', 'abcdefabcdef…', ['abcdefXY', 'abcdefabcdefX'], '…'],
    ['a text that was cut elsewhere', 'Error: abcdefgh, and then …', ['abcdefghijk'], 'Error: abcdefgh, and then …'],
    ['too short to count', 'Error: abcde…', ['abcdefgh', 'Error'], 'Error: abcde…'],
  ])('%s', (_, reason, values, shown) => {
    expect(withoutValues(reason, values)).toBe(shown);
  });

  test('are at most ten a minute, and the rest is counted in the next one', async () => {
    const rig = await openRig();
    rig.active.start('parcels');
    for (let i = 0; i < 25; i++) await rig.send('');
    await until(async () => (await rig.read(REJECTIONS)).length === REJECTIONS_A_MINUTE);
    // A connector that is started again has the minute that it had.
    await rig.active.stop('parcels');
    rig.active.start('parcels');
    await rig.send('');
    await rig.clock.advance(59_999);
    await rig.send('');
    await rig.clock.advance(1);
    await rig.send('');
    await rig.send('');
    await until(async () => (await rig.read(REJECTIONS)).length === REJECTIONS_A_MINUTE + 2);
    expect((await notes(rig)).map(({ suppressed }) => suppressed)).toEqual([
      ...Array.from({ length: REJECTIONS_A_MINUTE }, () => undefined),
      17,
      undefined,
    ]);
    expect(rig.log.lines.length).toBe(REJECTIONS_A_MINUTE + 2);
    // Another connector has a minute of its own.
    rig.active.start('letters');
    await rig.send('', { connectorId: 'letters' });
    await until(async () => (await rig.read('$webhook-letters-rejections')).length === 1);
  });

  test('are not logged where the connector says so, and noted all the same', async () => {
    const rig = await openRig();
    rig.active.start('parcels', { loggingEnabled: false });
    await rig.send('');
    await until(async () => (await rig.read(REJECTIONS)).length === 1);
    expect(rig.log.lines).toEqual([]);
  });

  test('before their body are noted too', async () => {
    const rig = await openRig();
    rig.active.start('parcels');
    await rig.ingest.refused('parcels', 413, 'Too long.', ['content-type']);
    await rig.ingest.refused('nobody', 413, 'Too long.', ['content-type']);
    await until(async () => (await rig.read(REJECTIONS)).length === 1);
    expect(await notes(rig)).toMatchObject([{ status: 413, reason: 'Too long.', headers: ['content-type'] }]);
    expect(await rig.read('$webhook-nobody-rejections')).toEqual([]);
  });

  test('do not pile up while nothing can be written', async () => {
    const rig = await openRig();
    rig.active.start('parcels');
    let asked = 0;
    rig.gated.gate = () => {
      asked++;
      return new Promise(() => {});
    };
    for (let minute = 0; minute < 10; minute++) {
      for (let i = 0; i < 20; i++) await rig.send('');
      await rig.clock.advance(60_000);
    }
    await until(() => asked > 0);
    expect(asked).toBeLessThanOrEqual(2 * REJECTIONS_A_MINUTE);
  });

  test('keep the limit that somebody has set for the stream', async () => {
    const rig = await openRig();
    await rig.opened.store.append(`$$${REJECTIONS}`, -2, [
      {
        id: '00000000-0000-4000-8000-000000000001',
        type: '$metadata',
        isJson: true,
        data: Buffer.from('{"$maxCount":2}'),
        metadata: new Uint8Array(0),
      },
    ]);
    rig.active.start('parcels');
    for (let i = 0; i < 5; i++) await rig.send('');
    await until(async () => (await rig.opened.store.streamInfo(REJECTIONS)).lastEventNumber === 4);
    expect((await notes(rig)).length).toBe(2);
  });
});

describe('losses after a 202', () => {
  test('are all noted with their delivery ids, however many in a minute', async () => {
    const rig = await openRig();
    rig.active.start('parcels');
    await rig.opened.store.deleteStream('gone', -2, 'hard');
    for (let n = 0; n < 40; n++)
      expect(await rig.send({ stream: 'gone' }, { headers: { 'webhook-id': `d-${n}` } })).toBe(202);
    await rig.ingest.close();
    const all = await notes(rig);
    expect(new Set(all.map(({ deliveryId }) => deliveryId))).toEqual(
      new Set(Array.from({ length: 40 }, (_, n) => `d-${n}`)),
    );
    for (const each of all)
      expect(each).toMatchObject({
        status: 202,
        reason: expect.stringContaining('stream_deleted'),
        headers: ['content-type', 'webhook-id'],
      });
    const lines = rig.log.lines.filter(({ level }) => level === 'warn');
    expect(lines.reduce((sum, { fields }) => sum + Number(fields!['count']), 0)).toBe(40);
    for (const { fields } of lines) expect(fields).toMatchObject({ rejections: REJECTIONS, codes: ['stream_deleted'] });
  });

  test('that can not be noted stand in the log', async () => {
    const rig = await openRig();
    rig.active.start('parcels');
    rig.gated.refuse = (stream) => (stream.includes('deliveries') ? null : new SkuaError('writer_stopped', 'Stopped.'));
    await rig.send({ stream: 'a' }, { headers: { 'webhook-id': 'd-1' } });
    await rig.ingest.close();
    expect(rig.log.lines.filter(({ level }) => level === 'error')).toMatchObject([
      {
        level: 'error',
        message: 'refused or lost webhook calls could not be recorded',
        fields: { stream: REJECTIONS, count: 1, deliveryIds: ['d-1'] },
      },
    ]);
  });
});
