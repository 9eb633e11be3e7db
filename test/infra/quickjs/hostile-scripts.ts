/**
 * What may come of a hostile script. Which of two depends on the speed of the machine: the limit of memory or that of
 * time is met first.
 */
export type Outcome = 'routed' | 'skipped' | 'failed' | 'timed-out';

export interface Hostile {
  readonly name: string;
  readonly script: string;
  readonly outcomes: readonly Outcome[];
  /** Of a failed one. */
  readonly reason?: RegExp;
  /** Of a routed one. */
  readonly stream?: string;
}

const route = (body: string): string => `function route(request) { ${body} }`;
const timedOut = (name: string, body: string): Hostile => ({ name, script: route(body), outcomes: ['timed-out'] });
const failed = (name: string, body: string, reason: RegExp): Hostile => ({
  name,
  script: route(body),
  outcomes: ['failed'],
  reason,
});
const exhausted = (name: string, body: string): Hostile => ({
  name,
  script: route(body),
  outcomes: ['failed', 'timed-out'],
});
const routed = (name: string, body: string, stream: string): Hostile => ({
  name,
  script: route(body),
  outcomes: ['routed'],
  stream,
});

export const HOSTILE: readonly Hostile[] = [
  timedOut('an endless loop', 'for (;;);'),
  timedOut('an endless loop that catches', 'for (;;) { try { for (;;); } catch { continue; } finally { continue; } }'),
  timedOut('an endless generator', 'function* g() { for (;;) yield 1; } for (const _ of g());'),
  timedOut('an endless iterator', 'for (const _ of { [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) });'),
  timedOut('a sort that never ends', 'const a = [3, 1, 2]; for (;;) a.sort(() => { for (;;); });'),
  timedOut('an endless getter in the result', 'return { get stream() { for (;;); } };'),
  timedOut('an endless proxy as the result', 'return new Proxy({}, { get() { for (;;); } });'),
  timedOut(
    'an endless getter in what is thrown',
    "const e = new Error('a'); Object.defineProperty(e, 'message', { get() { for (;;); } }); throw e;",
  ),
  { name: 'an endless top level', script: 'for (;;); function route() {}', outcomes: ['timed-out'] },
  timedOut('a catastrophic regular expression', "return /^(a+)+$/.test('a'.repeat(60) + 'b');"),
  timedOut('a quadratic regular expression', "return 'x'.repeat(200000).match(/(x+x+)+y/);"),
  timedOut('a built-in that never yields: indexOf', 'return [].indexOf.call({ length: 2 ** 53 - 1 }, 1);'),
  timedOut('a built-in that never yields: includes', 'return [].includes.call({ length: 2 ** 53 - 1 }, 1);'),
  exhausted('a built-in that never yields: fill', 'return [].fill.call(new Proxy({ length: 2 ** 53 - 1 }, {}), 1);'),
  timedOut('a built-in that never yields: lastIndexOf', 'return [].lastIndexOf.call({ length: 2 ** 53 - 1 }, 1);'),

  failed('endless recursion', 'return route(request);', /stack/),
  failed('endless recursion through a built-in', 'return [1].map(route);', /stack/),
  failed('endless recursion in a getter', 'const o = { get a() { return this.a; } }; return o.a;', /stack/),
  failed('endless recursion in toString', 'const o = { toString: () => `${o}` }; return { stream: `${o}` };', /stack/),
  failed(
    'a proxy that asks itself',
    'const p = Object.create(new Proxy({}, { get: (_, name, self) => self[name] })); return p;',
    /stack/,
  ),
  routed(
    'recursion that is caught',
    'let depth = 0; const f = () => { depth++; f(); }; try { f(); } catch (error) { return { stream: error.constructor.name + (depth > 100) }; }',
    'RangeErrortrue',
  ),
  exhausted('a chain of proxies', 'let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); return p;'),
  exhausted('deep JSON, written', 'let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return JSON.stringify(a);'),
  failed('deep JSON, read', "return JSON.parse('['.repeat(1e6));", /stack/),
  exhausted('a deep array as text', 'let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return { stream: String(a) };'),
  failed(
    'a deep regular expression',
    "return new RegExp('(?:'.repeat(1e5) + ')'.repeat(1e5));",
    /stack|SyntaxError|RangeError/,
  ),
  exhausted('deep source', "return eval('('.repeat(1e6) + ')'.repeat(1e6));"),

  exhausted('a memory bomb of strings', "const a = []; for (;;) a.push('x'.repeat(1e6) + a.length);"),
  exhausted('a memory bomb of arrays', 'const a = []; for (;;) a.push(new Array(1e5).fill(a.length));'),
  failed('a memory bomb at once', 'return new ArrayBuffer(2 ** 31);', /memory|length/),
  failed('a memory bomb of typed arrays', 'return new Float64Array(2 ** 28);', /memory|length/),
  exhausted('a memory bomb of maps', 'const m = new Map(); for (let i = 0; ; i++) m.set(i, {});'),
  exhausted(
    'a memory bomb that catches',
    "const a = []; for (;;) { try { a.push('x'.repeat(1e6) + a.length); } catch {} }",
  ),
  exhausted('a string that doubles', "let s = 'ab'; for (;;) s += s;"),
  exhausted('a replacement that grows', "let s = 'a'; for (;;) s = s.replace(/a/g, 'aa');"),
  exhausted('a number that squares', 'let a = 3n; for (;;) a = a * a;'),
  exhausted('an array of any length', 'return Array.from({ length: 2 ** 53 - 1 });'),
  failed('a string too long', "return { stream: 'x'.repeat(2 ** 30) };", /too long|length|memory/),
  failed('a stream too long', "return { stream: 'x'.repeat(20001) };", /20001 characters/),
  failed(
    'stream and schema too long together',
    "return { stream: 'x'.repeat(10001), schema: 'y'.repeat(10000) };",
    /20001 characters/,
  ),
  failed('a huge stream', "return { stream: 'x'.repeat(2e6) };", /2000000 characters/),
  failed('a huge message', "throw new Error('x'.repeat(2e6));", /a text of 2000000 characters/),
  failed('a huge text thrown', "throw 'x'.repeat(2e6);", /a text of 2000000 characters/),

  failed('a promise', "return Promise.resolve({ stream: 's' });", /promise/),
  {
    name: 'an async function',
    script: "async function route() { return { stream: 's' }; }",
    outcomes: ['failed'],
    reason: /promise/,
  },
  { name: 'a generator function', script: "function* route() { yield { stream: 's' }; }", outcomes: ['skipped'] },
  { name: 'a class', script: 'class route {}', outcomes: ['failed'], reason: /TypeError/ },
  {
    name: 'a script that is nothing but a proxy',
    script: 'globalThis.route = new Proxy(function () {}, { apply() { for (;;); } });',
    outcomes: ['timed-out'],
  },
  timedOut(
    'a promise job that would never end',
    'Promise.resolve().then(() => { for (;;); }); return { get stream() { for (;;); } };',
  ),
  routed(
    'jobs of promises, which are never run',
    "let ran = ''; Promise.resolve().then(() => { ran = 'ran'; }); return { stream: 's' + ran };",
    's',
  ),

  routed(
    'the constructor trick',
    "return { stream: String((() => {}).constructor.constructor('return typeof process + typeof require + typeof globalThis.process')()) };",
    'undefinedundefinedundefined',
  ),
  routed(
    'the constructor of the argument',
    "return { stream: String(request.constructor.constructor('return typeof process')()) };",
    'undefined',
  ),
  routed(
    'the constructor of the random function',
    "return { stream: String(Math.random.constructor('return typeof process')()) };",
    'undefined',
  ),
  routed(
    'the caller',
    'function f() { return f.caller === route || f.caller === null || f.caller === undefined; } return { stream: String(f()) };',
    'true',
  ),
  routed(
    'things of the host',
    "return { stream: ['console', 'setTimeout', 'setInterval', 'fetch', 'WebAssembly', 'SharedArrayBuffer', 'Atomics', 'performance', 'queueMicrotask', 'Worker', 'Buffer', 'std', 'os', 'scriptArgs', 'print', 'gc', 'navigator', 'WeakRef'].filter((name) => name in globalThis).join() || 'none' };",
    'none',
  ),
  routed('import', "import('node:fs').then(() => { for (;;); }); return { stream: 's' };", 's'),
  routed(
    'an argument for the random function',
    'return { stream: typeof Math.random.call(null, { valueOf() { throw 1; } }, () => { throw 2; }) };',
    'number',
  ),
  routed(
    'JSON.parse replaced',
    "JSON.parse = () => ({ body: 'mine' }); return { stream: typeof request.body };",
    'object',
  ),
  failed(
    'the stack of an error, made by the script',
    "Error.prepareStackTrace = () => ({ toString() { for (;;); } }); throw new Error('boo');",
    /^Error: boo/,
  ),
  failed(
    'the names of an error, made by the script',
    "throw Object.create(new Error('boo'), { name: { value: 5 } });",
    /Error/,
  ),
  failed('a proxy thrown', 'throw new Proxy(new Error(), { get() { for (;;); } });', /not an Error/),
];

/** A script whose first call changes all that it can reach, and reports what a call finds changed. */
export const GRAFFITI = `
  let seen = [];
  const kept = new Map(), pattern = /a/g, weak = new WeakMap();
  var loose = 'clean';
  function route(request) {
    const found = [];
    const look = (name, isChanged) => { if (isChanged) found.push(name); };
    look('top level let', seen.length > 0);
    look('map', kept.size > 0);
    look('lastIndex', pattern.lastIndex !== 0);
    look('var', loose !== 'clean');
    look('global', 'leak' in globalThis);
    look('prototype', 'leak' in {});
    look('array prototype', 'leak' in []);
    look('function', 'leak' in route);
    look('string method', ''.trim() !== '');
    look('JSON', JSON.stringify({}) !== '{}');
    look('Object.keys', Object.keys({ a: 1 }).length !== 1);
    look('Promise', 'leak' in Promise);
    look('Date', 'leak' in Date || new Date(0).getTime() !== 0);
    look('Math', 'leak' in Math);
    look('frozen', Object.isFrozen(Object.prototype));
    look('symbol', Symbol.for('leak') in Symbol);
    look('iterator', [...[1]].length !== 1);
    look('stack trace', Error.prepareStackTrace !== undefined);
    look('legacy statics', !!RegExp.$1);
    seen.push(request); kept.set('a', request); pattern.test('aaaa'); loose = request;
    globalThis.leak = request; route.leak = request; Promise.leak = Date.leak = Math.leak = request;
    Symbol[Symbol.for('leak')] = request;
    /(x)/.exec('x');
    Error.prepareStackTrace = () => 'leak';
    String.prototype.trim = () => 'leak';
    JSON.stringify = JSON.parse = () => 'leak';
    Object.keys = () => [];
    Date.prototype.getTime = () => 'leak';
    Array.prototype.leak = Object.prototype.leak = request;
    const result = { stream: (found.join(', ') || 'clean') + ' ' + request.body.n };
    Array.prototype[Symbol.iterator] = function* () {};
    Object.freeze(Object.prototype);
    Promise.resolve().then(() => { throw new Error('later'); });
    return result;
  }`;
