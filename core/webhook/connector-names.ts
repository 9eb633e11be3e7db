import { SECRETS_MAX } from './active.ts';
import type { Violation } from './active.ts';
import type { Settings } from './api.ts';
import { shown } from './connector-flatten.ts';

/** The names of settings, as the documents spell them; webhook-source.md part 2 and http-api.md section 9.7. */

export const ALLOWED_HEADERS_MAX = 100;

/** A `#` stands for the index of a list. */
const NAMES: readonly string[] = [
  'instanceTypeName', 'routingScript', 'waitForWrite', 'confirmationTimeout', 'allowedHeaders', 'allowedHeaders:#', 'logging:enabled',
  'signature:scheme', 'signature:secret', 'signature:secrets', 'signature:secrets:#', 'signature:timestampTolerance', 'signature:header', 'signature:prefix', 'signature:encoding', 'signature:hash',
  'deduplication:enabled', 'deduplication:header', 'deduplication:maxAge', 'deduplication:maxCount',
];
const SPELLINGS: ReadonlyMap<string, string> = new Map(NAMES.map((name) => [name.toLowerCase(), name]));
const INDEX_MAX: Readonly<Record<string, number>> = { 'allowedHeaders:#': ALLOWED_HEADERS_MAX - 1, 'signature:secrets:#': SECRETS_MAX - 1 };
const INDEX = /:(\d{1,9})$/;

export function isSecretName(name: string): boolean {
  return name === 'signature:secret' || name.startsWith('signature:secrets:');
}

export interface Spelled {
  readonly settings: Settings;
  readonly violations: readonly Violation[];
}

/** The settings under the names of the documents. Unknown names, and names given twice, are violations. */
export function spellNames(given: Settings): Spelled {
  const settings = new Map<string, string>();
  const violations: Violation[] = [];
  for (const [name, value] of given) {
    const spelled = spellingOf(name);
    if (typeof spelled !== 'string') violations.push(spelled);
    else if (settings.has(spelled)) violations.push({ field: spelled, description: 'Given more than once: names compare without regard to case.' });
    else settings.set(spelled, value);
  }
  for (const list of ['allowedHeaders', 'signature:secrets']) {
    if (settings.has(list) && [...settings.keys()].some((name) => name.startsWith(`${list}:`))) violations.push({ field: list, description: `Give either the list or ${list}, not both.` });
  }
  return { settings, violations };
}

function spellingOf(name: string): string | Violation {
  const index = INDEX.exec(name)?.[1];
  const pattern = SPELLINGS.get((index === undefined ? name : name.slice(0, -index.length) + '#').toLowerCase());
  if (pattern === undefined || name.endsWith('#')) return { field: shown(name), description: `There is no setting '${shown(name)}'. Did you mean '${nearest(name)}'?` };
  if (index === undefined) return pattern;
  const indexMax = INDEX_MAX[pattern]!;
  if (Number(index) > indexMax) return { field: shown(name), description: `The list ends at index ${indexMax}.` };
  return pattern.slice(0, -1) + String(Number(index));
}

/** The known name with the fewest letters to change, whatever the index of a list. */
function nearest(name: string): string {
  const folded = name.toLowerCase().slice(0, 60).replace(INDEX, ':0');
  let best = NAMES[0]!;
  let least = Number.POSITIVE_INFINITY;
  for (const known of NAMES) {
    if (known === 'signature:secrets') continue;
    const written = known.replace('#', '0');
    const changes = distance(folded, written.toLowerCase());
    if (changes < least) [best, least] = [written, changes];
  }
  return best;
}

/** Levenshtein's distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}

/** The values of a list, in the order of their indexes, which may have gaps. */
export function listOf(settings: Settings, name: string): readonly { readonly name: string; readonly value: string }[] {
  const prefix = `${name}:`;
  const indexed = [...settings].filter(([each]) => each.startsWith(prefix)).map(([each, value]) => ({ index: Number(each.slice(prefix.length)), name: each, value }));
  return indexed.sort((a, b) => a.index - b.index);
}
