import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ByteBudget } from '../../core/base/byte-budget.ts';
import { SkuaError } from '../../core/base/errors.ts';
import { EVENT_BYTES_MAX } from '../../core/streams/api.ts';
import type { NewEvent } from '../../core/streams/api.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import {
  Growth,
  JsonReader,
  literalSlices,
  reindent,
  reindentSlices,
  jsonString,
} from '../../handlers/http/json-text.ts';
import { atOnce, Turns } from '../../handlers/http/turns.ts';
import { parseBatch } from '../../handlers/streams/posted-events.ts';
import { ATOM, EVENTS, harness } from '../handlers/harness.ts';
import { ManualClock } from '../support/manual-clock.ts';

const MIB = 1_048_576;

/** `count` numbers under `depth` arrays: 2 characters each, and indented 2 * depth + 3. */
function deep(count: number, depth = 60): string {
  return '['.repeat(depth) + Array(count).fill('1').join(',') + ']'.repeat(depth);
}

interface Counted {
  readonly turns: Turns;
  count: number;
}

/** Turns of a clock, which are counted. */
function countedTurns(): Counted {
  const counted: Counted = {
    turns: new Turns({
      yield: (): Promise<void> => {
        counted.count++;
        return Promise.resolve();
      },
      sleep: () => Promise.resolve(),
      monotonicMs: () => 0,
    }),
    count: 0,
  };
  return counted;
}

function posted(data: string, id = 1): string {
  return `{"eventId":"00000000-0000-4000-8000-${String(id).padStart(12, '0')}","eventType":"t","data":${data}}`;
}

const bodyOf = (...events: string[]): Uint8Array<ArrayBuffer> =>
  encodeText(`[${events.join(',')}]`) as Uint8Array<ArrayBuffer>;
const sizeOf = (events: readonly NewEvent[]): number =>
  events.reduce((sum, { data, metadata }) => sum + data.length + metadata.length, 0);

describe('what would become longer than 64 KiB and than four times its source', () => {
  test('stays as it is, and all else is indented', () => {
    expect(reindent(` ${deep(10_000)}\n`) === deep(10_000)).toBe(true);
    expect(reindent(`{"a":${deep(10_000)}}`) === `{"a":${deep(10_000)}}`).toBe(true);
    // Less than 64 KiB.
    expect(reindent(deep(400)) === JSON.stringify(JSON.parse(deep(400)), null, 2)).toBe(true);
    // More than 64 KiB, and less than four times its source.
    const wide = JSON.stringify(Array.from({ length: 10_000 }, (_, n) => ({ n, text: 'some words' })));
    expect(reindent(wide)).toBe(JSON.stringify(JSON.parse(wide), null, 2));
    // Not all of a long text has to be indented much.
    const mixed = JSON.stringify([JSON.parse(deep(1_000)), 'x'.repeat(100_000)]);
    expect(reindent(mixed)).toBe(JSON.stringify(JSON.parse(mixed), null, 2));
  });

  test('is still looked at to its end', () => {
    for (const wrong of [
      `${deep(10_000)}]`,
      deep(10_000).slice(0, -1),
      `[${deep(10_000)},]`,
      `[${deep(10_000)},"\\x"]`,
    ])
      expect(reindent(wrong)).toBeNull();
  });

  test('a text that is as it is does not begin with a byte order mark', () => {
    expect(reindent(`\ufeff${deep(10_000)}`) === deep(10_000)).toBe(true);
  });
});

describe('in slices', () => {
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.string({ unit: 'binary' }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.string({ unit: 'binary' }), tie('value'), { maxKeys: 4, noNullPrototype: true }),
    ),
  })).value;

  test('a text is the same as in one stretch, wherever it is cut', () => {
    fc.assert(
      fc.property(json, fc.integer({ min: 1, max: 9 }), fc.boolean(), (value, slice, isAscii) => {
        const plain = JSON.stringify(value);
        // Escapes, too, are cut at no wrong place.
        const text = isAscii
          ? plain.replace(/[\u0080-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
          : plain;
        const reader = new JsonReader(text);
        reader.begin(1, null);
        while (!reader.goOn(reader.at + slice));
        reader.end();
        expect(decodeText(reader.bytes())).toBe(decodeText(encodeText(reindent(text, 1)!)));
      }),
      { seed: 35, numRuns: 200 },
    );
  });

  test.each(['"a', '"\\x"', '"\\u12"', '"\t"', '[1,]', '{"a"}', '{"a":1,}', '["\\u00', '{"abcdef\\', '[1 2]'])(
    '%j is refused',
    (text) => {
      for (let slice = 1; slice < 5; slice++) {
        const reader = new JsonReader(text);
        expect(() => {
          reader.begin(0, null);
          while (!reader.goOn(reader.at + slice));
          reader.end();
        }).toThrow(SkuaError);
      }
    },
  );

  test('long texts and literals are the same, and take many slices', () => {
    const text = JSON.stringify({ a: 'é\n\u{1f600}'.repeat(100_000), b: [1, 2, { c: 'x'.repeat(300_000) }] });
    for (const isLiteral of [false, true]) {
      const bytes = atOnce(reindentSlices(text, 0, new Growth(), isLiteral))!;
      expect(decodeText(bytes) === (isLiteral ? jsonString(reindent(text)!).slice(1, -1) : reindent(text))).toBe(true);
      expect([...reindentSlices(text, 0, new Growth(), isLiteral)].length).toBeGreaterThan(4);
    }
    expect(decodeText(atOnce(reindentSlices(deep(100_000), 0, new Growth(), true))!)).toBe(deep(100_000));
    const odd = 'x' + '\u{1f600}'.repeat(200_000);
    expect(decodeText(atOnce(literalSlices(odd))) === odd).toBe(true);
  });
});

describe('a posted array', () => {
  test('of an event that would be multiplied is stored as it was sent, in slices', async () => {
    const counted = countedTurns();
    const [event] = await parseBatch(bodyOf(posted(deep(1_000_000))), counted.turns, null);
    expect([event!.isJson, decodeText(event!.data) === deep(1_000_000)]).toEqual([true, true]);
    // One for each MiB that is decoded, and for each 128 KiB that is read.
    expect(counted.count).toBeGreaterThan(2 + 15);
    const held = await parseBatch(bodyOf(posted(JSON.stringify(deep(1_000_000)))), counted.turns, null);
    expect([held[0]!.isJson, held[0]!.data.length]).toEqual([true, deep(1_000_000).length]);
  });

  test('of many short events does not become more than eight times as long', async () => {
    const body = bodyOf(...Array.from({ length: 2_000 }, (_, n) => posted(deep(500, 40), n + 1)));
    const events = await parseBatch(body, countedTurns().turns, null);
    expect(decodeText(events[0]!.data) === reindent(deep(500, 40))).toBe(true);
    expect(decodeText(events.at(-1)!.data) === deep(500, 40)).toBe(true);
    expect(sizeOf(events)).toBeLessThan(8 * body.length + MIB + 65_536);
  });

  test('is taken apart alike in one stretch and in slices', async () => {
    const parts = [
      posted('{"a":"é\\n\\ud83d\\ude00","b":[1.50,{"c":null}]}', 1),
      posted('"text \\u00e9\\n"', 2),
      posted('"{\\"a\\":1}"', 3),
      posted('"{no"', 4),
      posted('7', 5),
      posted('null', 6),
      `{"eventid":"00000000-0000-4000-8000-000000000007","EVENTTYPE":"t","other":{"x\\n":["y\\u2028"]},"metadata":[1],"data":"é","data":{}}`,
    ];
    const short = parseBatch(bodyOf(...parts), countedTurns().turns, null) as NewEvent[];
    const counted = countedTurns();
    const long = await parseBatch(bodyOf(...Array.from({ length: 400 }, () => parts).flat()), counted.turns, null);
    expect(long).toHaveLength(400 * 7);
    expect(long.slice(-7)).toEqual(short);
    expect(counted.count).toBeGreaterThan(1);
    const wide = bodyOf(...parts, posted(JSON.stringify({ 'n\né': 'é\n'.repeat(MIB / 4) }), 8));
    expect((await parseBatch(wide, counted.turns, null)).slice(0, 7)).toEqual(short);
  });

  test('passes over what is not stored', async () => {
    const [event] = await parseBatch(
      bodyOf(`{"other":${deep(1_000_000)},"eventId":"00000000-0000-4000-8000-000000000001","eventType":"t"}`),
      countedTurns().turns,
      null,
    );
    expect(event!.data).toHaveLength(0);
  });

  test('with an event that is too large keeps no more of it than an event may have', async () => {
    for (const data of [
      deep(2_100_000),
      JSON.stringify('x'.repeat(EVENT_BYTES_MAX + 1)),
      JSON.stringify(Array(400_000).fill({ a: 1 })),
    ]) {
      await expect((async () => parseBatch(bodyOf(posted(data)), countedTurns().turns, null))()).rejects.toMatchObject({
        code: 'event_too_large',
      });
    }
  });

  test('tells of mistakes as in one stretch', async () => {
    const ends = [
      ']',
      ',]',
      ',{}]',
      ',{"eventId":"x","eventType":"t"}]',
      ',{"eventId":7,"eventType":"t"}]',
      ',{"eventId":"00000000-0000-4000-8000-000000000001"}]',
      ',{"a":"\\x"}]',
      ',{"a\t":1}]',
      '',
      '] x',
    ];
    for (const end of ends) {
      const outcome = async (count: number) => {
        try {
          return (
            (
              await parseBatch(
                encodeText(`[${Array(count).fill(posted('{"a":"é\\n"}')).join(',')}${end}`),
                countedTurns().turns,
                null,
              )
            ).length > 0
          );
        } catch (error) {
          const { code, message, data } = error as SkuaError;
          return [code, message, String(data['hint']).replace(/\d+/g, 'N')];
        }
      };
      expect(await outcome(4_000)).toEqual(await outcome(1));
    }
  });

  test('that is long waits for room, and counts what it becomes', async () => {
    const budget = new ByteBudget(
      { of: 'replies', totalBytes: 64 * MIB, reserveBytes: MIB, smallBytes: 1_024, waitersMax: 8, waitMs: 1_000 },
      new ManualClock(),
    );
    const share = budget.share();
    const body = bodyOf(...Array.from({ length: 2_000 }, (_, n) => posted(deep(500, 40), n + 1)));
    const events = await parseBatch(body, countedTurns().turns, null, () => share);
    expect(share.heldBytes).toBeGreaterThan(sizeOf(events) - MIB);
    share.close();
    expect(budget.heldBytes).toBe(0);
    await expect((async () => parseBatch(body, countedTurns().turns, null, () => share))()).rejects.toMatchObject({
      code: 'aborted',
    });
  });
});

describe('an event that is stored', () => {
  test('is answered in slices, and at most four times as long as it is', async () => {
    const { send, get, clock } = harness();
    const data = deep(300_000);
    const headers = {
      'content-type': 'application/json',
      'es-eventtype': 't',
      'es-eventid': '00000000-0000-4000-8000-000000000001',
    };
    expect((await send('POST', '/streams/s', headers, data)).status).toBe(201);
    let turns = 0;
    const yields = clock.yield.bind(clock);
    clock.yield = () => (turns++, yields());
    for (const accept of ['application/json', 'application/vnd.eventstore.event+json', ATOM]) {
      turns = 0;
      const { status, text } = await get('/streams/s/0', accept);
      expect([status, text.includes(data), text.length < data.length + 4_096, turns > 3]).toEqual([
        200,
        true,
        true,
        true,
      ]);
      JSON.parse(text);
    }
    for (const embed of ['content', 'body', 'pretty', 'tryharder']) {
      turns = 0;
      const { status, text } = await get(`/streams/s/0/forward/5?embed=${embed}`, ATOM);
      expect([embed, status, text.includes(data), text.length < data.length + 4_096, turns > 3]).toEqual([
        embed,
        200,
        true,
        true,
        true,
      ]);
      const [entry] = JSON.parse(text).entries;
      expect(
        embed === 'content' ? JSON.stringify(entry.content.data) === data : entry.data === data && entry.isJson,
      ).toBe(true);
    }
    turns = 0;
    expect((await get('/streams/s/0/forward/5?embed=rich', ATOM)).status).toBe(200);
    expect(turns).toBe(0);
  });

  test('and is long, of any kind, looks as in one stretch', async () => {
    const { send, get, id } = harness();
    const append = (type: string, data: Uint8Array<ArrayBuffer> | string) =>
      send('POST', '/streams/s', { 'content-type': type, 'es-eventtype': 't', 'es-eventid': id() }, data);
    // Each kind once short, once long; its long form only repeats what is in the short one.
    const parts = ['{"a":"é\\n\\u0001😀","b":1.50}', 'no JSON "é"\n\u2028', '[1,'];
    for (const type of ['application/json', 'application/octet-stream']) {
      for (const part of parts) {
        await append(type, part.startsWith('{') ? `[${part}]` : part);
        await append(type, part.startsWith('{') ? `[${Array(5_000).fill(part).join(',')}]` : part.repeat(100_000));
      }
    }
    for (const embed of ['body', 'pretty', 'tryharder', 'content']) {
      const { entries } = (await get(`/streams/s/0/forward/20?embed=${embed}`, ATOM)).json();
      for (let i = 0; i < 12; i += 2) {
        const [short, long] = [entries.at(-1 - i), entries.at(-2 - i)];
        const shape = (entry: any) => [
          entry.isJson,
          entry.isMetaData,
          entry.metaData,
          entry.content === null,
          typeof entry.data,
          typeof entry.content?.data,
        ];
        expect(shape(long)).toEqual(shape(short));
        const [few, many] =
          embed === 'content'
            ? [JSON.stringify(short.content?.data), JSON.stringify(long.content?.data)]
            : [short.data, long.data];
        if (typeof few !== 'string') continue;
        const [from, to] =
          few.startsWith('[') && few.endsWith(']')
            ? [1, -1]
            : few.startsWith('"') && few.endsWith('"') && embed === 'content'
              ? [1, -1]
              : [0, few.length];
        const unit = few.slice(from, to).trimEnd();
        expect(many.split(unit).length).toBe((many.startsWith('[') && many.endsWith(']') ? 5_000 : 100_000) + 1);
      }
    }
  });
});

test('a page of many short events does not become more than eight times as long', async () => {
  const { context, get, id } = harness();
  const data = encodeText(deep(500, 40));
  await context.store.append(
    's',
    -2,
    Array.from({ length: 1_000 }, () => ({ id: id(), type: 't', isJson: true, data, metadata: new Uint8Array(0) })),
  );
  for (const embed of ['pretty', 'tryharder', 'content']) {
    const { status, text } = await get(`/streams/s/head/backward/1000?embed=${embed}`, ATOM);
    expect(status).toBe(200);
    // Escaped line ends are one character more each.
    expect(text.length).toBeLessThan(1.1 * (8 * 1_000 * data.length + MIB) + 1_000 * 1_500);
  }
});

test('a refusal quotes no more of a request than its first characters', async () => {
  expect(new SkuaError('bad_request', 'x'.repeat(100_000)).message).toHaveLength(8_192);
  expect(new SkuaError('bad_request', 'x'.repeat(8_192)).message).toBe('x'.repeat(8_192));
  const { send } = harness();
  const { status, text } = await send(
    'POST',
    '/streams/s',
    { 'content-type': EVENTS, 'es-expectedversion': 'v'.repeat(100_000) },
    '[]',
  );
  expect([status, text.length < 9_000]).toEqual([400, true]);
});
