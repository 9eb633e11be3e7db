import { globSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { bySize } from './run-size.ts';

/** What a hostile client sends: the same character again and again, wherever text is looked at. */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The framing of a request is the server's own business: with these it is another request. */
const FRAMING = new Set(['content-length', 'host', 'transfer-encoding', 'connection', 'expect']);

/**
 * Every header that the sources look at, in lower case: by its name, as one of our own in both families, or for a
 * signature.
 */
export function headersOfSources(): string[] {
  const found = new Set<string>();
  for (const file of globSync(
    ['handlers/**/*.ts', 'local/{http,tracing,node,metrics}/*.ts', 'core/webhook/**/*.ts', 'infra/aws/functions/*.ts'],
    { cwd: ROOT },
  )) {
    const source = readFileSync(`${ROOT}/${file}`, 'utf8');
    for (const [, name, ours] of source.matchAll(/headers\.get\('([a-z][a-z-]*)'\)|'((?:es|kurrent)-\w+)'/g))
      found.add(name ?? ours!);
    for (const [, name] of source.matchAll(/family\('(\w+)'\)/g))
      for (const prefix of ['kurrent', 'es']) found.add(`${prefix}-${name!.toLowerCase()}`);
    for (const [, name] of source.matchAll(/[hH]eader: '([\w-]+)'/g)) found.add(name!.toLowerCase());
  }
  return [...found].filter((name) => !FRAMING.has(name)).sort();
}

/** Every parameter of a query that the handlers look at. */
export function parametersOfSources(): string[] {
  const found = new Set<string>();
  for (const file of globSync('handlers/**/*.ts', { cwd: ROOT })) {
    for (const [, name] of readFileSync(`${ROOT}/${file}`, 'utf8').matchAll(/queryOf\(call, '([\w-]+)'/g))
      found.add(name!);
  }
  return [...found].sort();
}

const CHARACTERS = bySize(
  [' ', '"', '/', ',', ';', '.', '0', 'a'],
  [' ', '\t', '"', "'", '/', '\\', ',', ';', '=', ':', '.', '-', '+', '*', '%', '(', '[', '{', '0', '9', 'a', 'F'],
);

/** What stands before and behind them; blanks at the ends would be lost on the way. */
const AROUND: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  accept: [
    ['application/json;q=', ';x'],
    ['application/', ', x'],
    ['text/plain;"', 'x'],
  ],
  'content-type': [
    ['application/json; charset=', 'x y'],
    ['application/json;charset="', 'x'],
    ['application/json', ';x'],
  ],
  authorization: [
    ['Basic ', 'x'],
    ['Basic YTpi', '!'],
    ['Bearer', 'x'],
  ],
  range: [
    ['bytes=', '-x'],
    ['bytes=0-', ',x'],
  ],
  'x-forwarded-prefix': [
    ['/a', '/b'],
    ['a', ',b'],
  ],
  'x-forwarded-host': [
    ['a', '/'],
    ['[', ']:1x'],
    ['a.test:', 'x'],
  ],
  'if-none-match': [
    ['"', 'x'],
    ['W/"', '", "x'],
  ],
  traceparent: [['00-', '-01']],
};

/**
 * Texts of a length that ask the most of whoever looks for a pattern in them, for a header or a parameter of this name.
 */
export function hostileTexts(name: string, length: number): string[] {
  const around = [['x', 'x'], ...(AROUND[name] ?? [])];
  return around.flatMap(([before, behind]) =>
    CHARACTERS.map(
      (character) => `${before}${character.repeat(Math.floor(length) - before!.length - behind!.length)}${behind}`,
    ),
  );
}

/** JSON values of a length whose tokens are hostile; some are no JSON, or nested deeper than any limit. */
export function hostileValues(length: number): string[] {
  const fill = (piece: string, of = length) => piece.repeat(Math.floor(of / piece.length));
  return [
    `0.${fill('0')}1`,
    `1.${fill('0')}`,
    `1.${fill('10')}`,
    `0.1${fill('0')}e5`,
    fill('9'),
    `-${fill('0')}`,
    `1e${fill('9')}`,
    `1e-${fill('0')}1`,
    `${fill('1')}.`,
    `${fill('1')}e`,
    fill('-'),
    `"${fill('\\\\')}"`,
    `"${fill('\\"')}"`,
    `"${fill('\\u0061')}"`,
    `"${fill('\\u2028')}"`,
    `"${fill('\u2028')}"`,
    `"${fill('\\ud800')}"`,
    `"${fill('a')}`,
    fill('"'),
    `"${fill('\\')}`,
    fill('['),
    fill('{"a":'),
    `${fill('[', 64)}${fill(']', 64)}`,
    `${fill('[', 2_000)}${fill(']', 2_000)}`,
    `[${fill('0,')}0]`,
    `[${fill('[],')}0]`,
    `{${fill('"a":0,')}"a":0}`,
    fill(' '),
    `[${fill(' ')}]`,
    fill('\t'),
    `${fill('true,')}`,
  ];
}

export interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends requests over a few connections that are kept. */
export class Sender {
  readonly #agent: Agent;
  readonly #url: string;

  constructor(url: string, connections: number) {
    this.#url = url;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections });
  }

  /** Status of the answer, once all of it has come. */
  status(path: string, { method = 'GET', headers = {}, body }: Sent = {}): Promise<number> {
    return new Promise((resolve, reject) => {
      const sent = request(
        `${this.#url}${path}`,
        {
          method,
          agent: this.#agent,
          headers: { ...headers, ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }) },
        },
        (answer) => {
          answer
            .on('error', reject)
            .on('end', () => resolve(answer.statusCode!))
            .resume();
        },
      );
      sent.on('error', reject).end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
