import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAst } from 'vite';

/**
 * Shows that a commit moves and renames, and changes nothing else: every function, member, type and other statement of
 * the sources is hashed over its syntax tree, without comments, without imports, whatever file it stands in, and there
 * are as many of each before and after.
 *
 *   node test/support/same-code.ts BEFORE [AFTER] [--renamed NAMES.json]
 *
 * BEFORE and AFTER are commits; without AFTER it is what lies in the folder. NAMES.json says what an identifier is
 * called afterwards: {"before": "after"}. What differs is printed, and the exit code is 1 then.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OF_NO_MEANING = new Set(['start', 'end', 'loc', 'range', 'raw']);

interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** Hashes of what the sources are made of, each with how often it is there and where. */
type Parts = Map<string, string[]>;

/** The files of a commit, or of the folder. */
function* filesOf(commit: string | null): Generator<readonly [file: string, text: string]> {
  let folder = ROOT;
  if (commit !== null) {
    folder = mkdtempSync(join(tmpdir(), 'skua-same-code-'));
    execFileSync('tar', ['-x', '-C', folder], {
      input: execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: 1 << 30 }),
    });
  }
  try {
    for (const file of globSync('{core,handlers,infra,local,test}/**/*.{ts,tsx}', {
      cwd: folder,
      exclude: (name) => name.includes('node_modules'),
    }).sort())
      yield [file, readFileSync(join(folder, file), 'utf8')];
  } finally {
    if (commit !== null) rmSync(folder, { recursive: true });
  }
}

function partsOf(commit: string | null, names: Readonly<Record<string, string>>): Parts {
  const parts: Parts = new Map();
  for (const [file, text] of filesOf(commit)) {
    for (const [what, node] of statements(
      parseAst(text, { lang: file.endsWith('x') ? 'tsx' : 'ts' }) as unknown as Node,
    )) {
      const hash = createHash('sha256')
        .update(JSON.stringify(node, (key, value: unknown) => meaning(key, value, file, names)))
        .digest('hex');
      const found = parts.get(hash);
      if (found === undefined) parts.set(hash, [`${file}: ${what}`]);
      else found.push(`${file}: ${what}`);
    }
  }
  return parts;
}

/** Statements without imports and exports; of a class its head, and each of its members. */
function* statements(program: Node): Generator<readonly [what: string, node: unknown]> {
  for (const statement of program['body'] as Node[]) {
    const node = (statement['declaration'] ?? statement) as Node;
    if (/^(Import|Export)/.test(node.type)) continue;
    const name = nameOf(node);
    if (node.type !== 'ClassDeclaration') {
      yield [name, node];
      continue;
    }
    const { body, ...head } = node;
    yield [name, head];
    for (const member of (body as { readonly body: Node[] }).body) yield [`${name}.${nameOf(member)}`, [name, member]];
  }
}

function nameOf(node: Node): string {
  const { id, key, declarations } = node as unknown as {
    id?: { name: string } | null;
    key?: { name: string };
    declarations?: readonly { id: { name: string } }[];
  };
  return id?.name ?? key?.name ?? declarations?.[0]?.id.name ?? node.type;
}

/** What of a node says something. Late imports name files, which may move. */
function meaning(key: string, value: unknown, file: string, names: Readonly<Record<string, string>>): unknown {
  if (OF_NO_MEANING.has(key)) return undefined;
  if (typeof value === 'bigint') return `${value}n`;
  if (key === 'name' && typeof value === 'string') return names[value] ?? value;
  if (key === 'value' && typeof value === 'string' && /^\.\.?\//.test(value))
    return basename(resolve(dirname(file), value));
  return value;
}

function difference(one: Parts, other: Parts): string[] {
  return [...one].flatMap(([hash, places]) => places.slice(other.get(hash)?.length ?? 0));
}

const args = process.argv.slice(2);
const at = args.indexOf('--renamed');
const names =
  at < 0 ? {} : (JSON.parse(readFileSync(args.splice(at, 2)[1]!, 'utf8')) as Readonly<Record<string, string>>);
const [before, after = null] = args;
if (before === undefined) throw new Error('Which commit is compared? node test/support/same-code.ts BEFORE [AFTER]');
const [was, is] = [partsOf(before, names), partsOf(after, {})];
for (const place of difference(was, is)) console.log(`- ${place}`);
for (const place of difference(is, was)) console.log(`+ ${place}`);
const count = [...was.values()].reduce((sum, places) => sum + places.length, 0);
const isSame = difference(was, is).length === 0 && difference(is, was).length === 0;
console.log(isSame ? `the same ${count} parts` : 'not the same');
process.exitCode = isSame ? 0 : 1;
