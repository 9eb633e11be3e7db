import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { REASON_LENGTH_MAX } from '../../core/ports/routing-sandbox.ts';
import type { RoutingResult, RoutingSandbox } from '../../core/ports/routing-sandbox.ts';

/** 2031-04-03T09:15:00.123Z */
const NOW_MS = 1_932_974_100_123;
const REQUEST = {
  body: { resource: 'order', action: 'created' },
  headers: { 'content-type': 'application/json' },
  path: '/webhook/shop',
  query: { tenant: 'a' },
};

/** Scripts that route, and what they return for REQUEST. */
const ROUTED: readonly [name: string, script: string, stream: string, schema: string | null][] = [
  [
    'a function declaration',
    'function route(request) { return { stream: `${request.body.resource}-1`, schema: request.body.action }; }',
    'order-1',
    'created',
  ],
  [
    'an arrow function',
    'const route = ({ query, path }) => ({ stream: query.tenant + path });',
    'a/webhook/shop',
    null,
  ],
  ['a property of the global object', "globalThis.route = function () { return { stream: 's' }; };", 's', null],
  ['state of the top level', "let count = 0; var route = () => ({ stream: 's' + ++count });", 's1', null],
  ['headers', "function route({ headers }) { return { stream: headers['content-type'] }; }", 'application/json', null],
  ['schema null', "function route() { return { stream: 's', schema: null }; }", 's', null],
  ['an empty schema', "function route() { return { stream: 's', schema: '' }; }", 's', ''],
  ['further members', "function route() { return { stream: 's', other: () => 1 }; }", 's', null],
  ['a getter', "function route() { return { get stream() { return 's'; }, get schema() { return 't'; } }; }", 's', 't'],
  ['an inherited member', "class Result { get stream() { return 's'; } } const route = () => new Result();", 's', null],
  [
    'a proxy',
    'const route = () => new Proxy({}, { get: (_, name) => `of ${String(name)}` });',
    'of stream',
    'of schema',
  ],
  [
    'text beyond ASCII',
    "function route() { return { stream: 'Zürich-\\u{1F600}-\\0' }; }",
    'Zürich-\u{1F600}-\0',
    null,
  ],
  ['a name that the sandbox does not judge', "function route() { return { stream: '$all' }; }", '$all', null],
];

const SKIPPED: readonly string[] = [
  'null',
  'undefined',
  '{}',
  '[]',
  "{ stream: '' }",
  '{ stream: null }',
  '{ stream: undefined }',
  "{ schema: 't' }",
  "new Map([['stream', 's']])",
  "{ stream: '', get schema() { throw 1; } }",
];

const FAILED: readonly [result: string, reason: RegExp][] = [
  ['1', /object/],
  ["'text'", /object/],
  ['true', /object/],
  ['10n', /object/],
  ['Symbol.iterator', /object/],
  ['() => 1', /object/],
  ['class {}', /object/],
  ["Promise.resolve({ stream: 's' })", /promise/],
  ["(async () => ({ stream: 's' }))()", /promise/],
  ['{ stream: 1 }', /stream must be a string/],
  ["{ stream: new String('s') }", /stream must be a string/],
  ["{ stream: ['s'] }", /stream must be a string/],
  ["{ stream: { toString: () => 's' } }", /stream must be a string/],
  ["{ stream: Symbol('s') }", /stream must be a string/],
  ["{ stream: 's', schema: 1 }", /schema must be a string/],
  ["{ stream: 's', schema: {} }", /schema must be a string/],
  ["{ stream: '\\ud800' }", /surrogate/],
  ["{ stream: 's', schema: '\\udc00' }", /surrogate/],
  ["{ get stream() { throw new TypeError('no stream'); } }", /TypeError: no stream/],
  ["{ stream: 's', get schema() { throw new TypeError('no schema'); } }", /TypeError: no schema/],
  ['(() => { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy; })()', /TypeError/],
  ["(() => { throw 'boo'; })()", /boo/],
  ['(() => { throw null; })()', /not an Error/],
  ['nowhere.to.be.found', /ReferenceError.*line 2, column \d+/],
];

/** What every implementation of RoutingSandbox must do. */
export function describeRoutingSandbox(name: string, make: () => RoutingSandbox): void {
  describe(`RoutingSandbox: ${name}`, () => {
    let sandbox: RoutingSandbox;
    beforeAll(() => {
      sandbox = make();
    });
    afterAll(() => sandbox.close());

    const route = (
      script: string,
      options: { request?: unknown; connectorId?: string; nowMs?: number; seed?: number } = {},
    ): Promise<RoutingResult> => {
      const { request = REQUEST, connectorId = 'shop', nowMs = NOW_MS, seed = 1 } = options;
      return sandbox.route({ connectorId, script, requestJson: JSON.stringify(request), nowMs, seed });
    };
    const streamOf = async (expression: string, options: Parameters<typeof route>[1] = {}): Promise<string> => {
      const result = await route(`function route(request) { return { stream: String(${expression}) }; }`, options);
      return result.kind === 'routed' ? result.stream : JSON.stringify(result);
    };

    test.each(ROUTED)('routed: %s', async (_, script, stream, schema) => {
      expect(await sandbox.check(script)).toBeNull();
      expect(await route(script)).toEqual({ kind: 'routed', stream, schema, cpuMs: expect.any(Number) });
    });

    test('the text of the body is there for who asks for it, exactly as it came, and shows nowhere else', async () => {
      const body = '{ "id": 9007199254740993, "name": "Zürich \\u0041 \u{1F600}" }';
      const requestJson = `{"body":${body},"headers":{},"path":"/webhook/shop","query":{}}`;
      const ask = (script: string, bodyLength?: number) =>
        sandbox.route({
          connectorId: 'shop',
          script,
          requestJson,
          nowMs: NOW_MS,
          seed: 1,
          ...(bodyLength !== undefined && { bodyLength }),
        });
      expect(await ask('const route = ({ text }) => ({ stream: text });', body.length)).toMatchObject({ stream: body });
      expect(
        await ask(
          'const route = ({ body, text }) => ({ stream: `${body.id} ${/"id":\\s*(\\d+)/.exec(text)[1]}` });',
          body.length,
        ),
      ).toMatchObject({ stream: '9007199254740992 9007199254740993' });
      expect(
        await ask('const route = (request) => ({ stream: Object.keys(request).join() });', body.length),
      ).toMatchObject({ stream: 'body,headers,path,query' });
      expect(
        await ask(
          'Object.prototype.value = 1; Object.prototype.set = 2; String.prototype.slice = null; const route = ({ text }) => ({ stream: text });',
          body.length,
        ),
      ).toMatchObject({ stream: body });
      expect(await ask('const route = ({ text }) => ({ stream: String(text) });')).toMatchObject({
        stream: 'undefined',
      });
    });

    test('a member type without a schema is noticed, and nothing is changed by it', async () => {
      expect(await route("const route = () => ({ stream: 's', type: 'order-placed' });")).toEqual({
        kind: 'routed',
        stream: 's',
        schema: null,
        hasType: true,
        cpuMs: expect.any(Number),
      });
      for (const result of [
        "{ stream: 's', schema: 't', type: 'u' }",
        "Object.create({ type: 'u' }, { stream: { value: 's' } })",
        "new Proxy({ stream: 's' }, { getOwnPropertyDescriptor() { throw 1; } })",
        "{ stream: 's' }",
      ]) {
        expect(await route(`const route = () => (${result});`)).not.toHaveProperty('hasType');
      }
    });

    test.each(SKIPPED)('skipped: %s', async (result) => {
      expect(await route(`const route = () => (${result});`)).toEqual({ kind: 'skipped', cpuMs: expect.any(Number) });
    });

    test.each(FAILED)('failed: %s', async (result, reason) => {
      expect(await route(`function route() {\n  return ${result}; }`)).toEqual({
        kind: 'failed',
        reason: expect.stringMatching(reason),
        cpuMs: expect.any(Number),
      });
    });

    test.each([
      ['null', null],
      ['a number', 1.5],
      ['a text', 'text'],
      ['an array', [1, [2]]],
      ['a member named __proto__', JSON.parse('{"__proto__":{"a":1}}')],
    ])('the body is the JSON as it came: %s', async (_, body) => {
      expect(await streamOf('JSON.stringify(request)', { request: { ...REQUEST, body } })).toBe(
        JSON.stringify({ ...REQUEST, body }),
      );
    });

    test('a property of the result is read once, stream first', async () => {
      const script =
        "let log = ''; const route = () => ({ get stream() { log += 'a'; return log; }, get schema() { log += 'b'; return log; } });";
      expect(await route(script)).toMatchObject({ stream: 'a', schema: 'ab' });
    });

    test('every form of the present is the arrival time, in UTC', async () => {
      const expression =
        "[Date.now(), +new Date(), Date(), new Date().toISOString(), new Date().getHours(), new Date(2031, 0).toISOString()].join(' | ')";
      expect(await streamOf(expression)).toBe(
        `${NOW_MS} | ${NOW_MS} | Thu Apr 03 2031 09:15:00 GMT+0000 | 2031-04-03T09:15:00.123Z | 9 | 2031-01-01T00:00:00.000Z`,
      );
      expect(await streamOf('Date.now()', { nowMs: 5 })).toBe('5');
    });

    test('time and chance of the top level are those of the call', async () => {
      const script =
        'const then = Date.now(), dice = Math.random(); const route = () => ({ stream: `${then} ${dice} ${Math.random() !== dice}` });';
      const [first, again, later, other] = await Promise.all(
        [{}, {}, { nowMs: NOW_MS + 1 }, { seed: 2 }].map((options) => route(script, options)),
      );
      expect(first).toMatchObject({ stream: expect.stringMatching(`^${NOW_MS} 0\\.\\d+ true$`) });
      expect(again).toMatchObject({ stream: (first as { stream: string }).stream });
      expect(later).toMatchObject({
        stream: (first as { stream: string }).stream.replace(`${NOW_MS}`, `${NOW_MS + 1}`),
      });
      expect((other as { stream: string }).stream).not.toBe((first as { stream: string }).stream);
    });

    test('random numbers follow from the seed, spread over [0, 1) and are never the same twice', async () => {
      const expression = 'Array.from({ length: 1000 }, Math.random)';
      const text = await streamOf(expression, { seed: 7 });
      const numbers = text.split(',').map(Number);
      expect(new Set(numbers).size).toBe(1000);
      expect(numbers.every((n) => n >= 0 && n < 1)).toBe(true);
      expect(numbers.reduce((sum, n) => sum + n) / 1000).toBeCloseTo(0.5, 1);
      expect(await streamOf(expression, { seed: 7 })).toBe(text);
      expect(await streamOf(expression, { seed: 8 })).not.toBe(text);
    });

    test('the reason of a failure is cut', async () => {
      const result = await route("function route() { throw new Error('x'.repeat(10000)); }");
      expect(result).toMatchObject({
        kind: 'failed',
        reason: expect.stringMatching(/^Error: x+… \(line 1, column \d+\)$/),
      });
      expect((result as { reason: string }).reason).toHaveLength(REASON_LENGTH_MAX);
    });

    test('a new script of a connector counts at once', async () => {
      expect(await route("const route = () => ({ stream: 'old' });")).toMatchObject({ stream: 'old' });
      expect(await route("const route = () => ({ stream: 'new' });")).toMatchObject({ stream: 'new' });
    });

    test('scripts of several connectors do not mix, and a released one is prepared again', async () => {
      const results = await Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          route(`const mine = ${i % 10}; const route = ({ body }) => ({ stream: mine + ' ' + body });`, {
            connectorId: `c${i % 10}`,
            request: { body: i },
          }),
        ),
      );
      expect(results.map((result) => (result as { stream: string }).stream)).toEqual(
        Array.from({ length: 100 }, (_, i) => `${i % 10} ${i}`),
      );
      sandbox.release('c1');
      sandbox.release('never-seen');
      expect(await route("const route = () => ({ stream: 'again' });", { connectorId: 'c1' })).toMatchObject({
        stream: 'again',
      });
    });

    test.each([
      ['function route(r) {\n  retrun 1 2; }', /SyntaxError.*\(line 2, column \d+\)/],
      ["import fs from 'node:fs'; function route() {}", /SyntaxError.*\(line 1, column \d+\)/],
      ['export function route() {}', /SyntaxError/],
      [
        'export function route({ body }) { return null; }',
        /SyntaxError.*\(line 1, column 1\)\. .*write function route\(request\) \{ … \} at its top level, without export/,
      ],
      ['const route = () => null;\nexport default route;', /SyntaxError.*\(line 2, column 1\)\. .*without export/],
      ["import x from 'y';\nfunction route() {}", /without export or import/],
      ['module.exports = { route: () => null };', /ReferenceError.*write function route\(request\) .*export nothing/],
      [
        'function route(request: any) { return null; }',
        /SyntaxError.*\(line 1, column \d+\)\. .*TypeScript, write function route\(request\) .*without types/,
      ],
      ['function route({ body }: Request): Result {\n  return null;\n}', /without types/],
      ['interface Body { id: string }\nfunction route() {}', /without types/],
      ['const route = (r) => ({ stream: r.body.id as string });', /without types/],
      ['function route(r) { return { stream: 1, ; } }', /SyntaxError[^.]*\(line 1, column \d+\)$/],
      ['await 1; function route() {}', /SyntaxError/],
      ["function route() {}\nthrow new RangeError('top');", /RangeError: top \(line 2, column \d+\)/],
      ['', /function named route/],
      ['const Route = () => {};', /function named route/],
      ['const route = { stream: 1 };', /function named route/],
      ['(function () { function route() {} })()', /function named route/],
      ["Object.defineProperty(globalThis, 'route', { get() { throw 1; } });", /function named route/],
      ['for (;;);', /longer than the \d+ ms/],
    ])('check refuses %s', async (script, reason) => {
      expect(await sandbox.check(script)).toMatch(reason);
      expect(await sandbox.check('function route() {}')).toBeNull();
    });

    test('after close everything is aborted', async () => {
      const closing = make();
      const waiting = closing.route({
        connectorId: 'a',
        script: 'function route() { for (;;); }',
        requestJson: '{}',
        nowMs: 0,
        seed: 0,
      });
      const refused = expect(waiting).rejects.toMatchObject({ code: 'aborted' });
      await closing.close();
      await refused;
      await expect(closing.check('')).rejects.toMatchObject({ code: 'aborted' });
      await expect(
        closing.route({ connectorId: 'a', script: '', requestJson: '{}', nowMs: 0, seed: 0 }),
      ).rejects.toMatchObject({ code: 'aborted' });
      await closing.close();
    });
  });
}
