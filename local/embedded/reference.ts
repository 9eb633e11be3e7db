import { readFileSync } from 'node:fs';
import { STORE_ERRORS } from './errors.ts';

/**
 * The reference page of `skua/embedded`, made of its declarations: what api.ts exports, in its order, `openStore` before it, and the codes of errors behind it.
 * The declarations are plain interfaces and types by house rule, which is all that is understood here; `test/local/embedded/reference.test.ts` looks that nothing is left out.
 */
export function referencePage(): string {
  const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8');
  const [open] = declarationsOf(read('open.ts'));
  const declarations = declarationsOf(read('api.ts'));
  const store = declarations.find(({ name }) => name === 'Store')!;
  const rest = declarations.filter((each) => each !== store);
  return [
    '# skua/embedded\n',
    'The store without a server, in your process. This page is written by `npm run reference` from the declarations. Versions are semantic for what stands here, and for nothing else of the package (ARCHITECTURE.md, "Versions").\n',
    '```ts\nimport { isSkuaError, openStore, SkuaError, STORE_ERRORS } from \'skua/embedded\';\n```\n',
    sectionOf(open!), sectionOf(store), ...rest.map(sectionOf),
    '## Errors\n',
    'What is rejected is a `SkuaError`: an `Error` with a stable `code`, a `message` that says what to do, and `data`, an object with what a program needs to react. `isSkuaError(error, code?)` tells whether an error is one, of that code. `STORE_ERRORS` has this table, '
    + '`StoreErrorCode` its codes.\n',
    `| code | meaning |\n|---|---|\n${Object.entries(STORE_ERRORS).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`).join('\n')}\n`,
  ].join('\n');
}

interface Member {
  readonly doc: Doc;
  readonly code: string;
}

interface Declaration extends Member {
  readonly name: string;
  readonly members: readonly Member[];
}

interface Doc {
  readonly text: string;
  readonly throws: string | null;
  readonly example: string | null;
}

const NO_DOC: Doc = { text: '', throws: null, example: null };

/** What a file exports, with its comments. */
function declarationsOf(source: string): Declaration[] {
  const lines = source.split('\n');
  const found: Declaration[] = [];
  for (let i = 0; i < lines.length; i++) {
    const [, name] = /^export (?:async )?(?:interface|type|function) (\w+)/.exec(lines[i]!) ?? [];
    if (name === undefined) continue;
    const doc = docAbove(lines, i);
    const first = lines[i]!.replace(/^export /, '');
    const isBlock = first.endsWith('{') && first.startsWith('interface');
    const end = isBlock ? lines.indexOf('}', i) : endOfType(lines, i);
    const code = isBlock ? first.replace(/ \{$/, '') : lines.slice(i, first.startsWith('async function') ? i + 1 : end + 1).join('\n').replace(/^export (?:async )?/, '').replace(/ \{$/, '');
    found.push({ name, doc, code, members: isBlock ? membersOf(lines.slice(i + 1, end)) : [] });
    i = end;
  }
  return found;
}

/** A type ends with the first line that ends a statement at its margin. */
function endOfType(lines: readonly string[], from: number): number {
  let end = from;
  while (!/^(?:\S|  \}).*;$|^\};$|^\}$/.test(lines[end]!)) end++;
  return end;
}

function membersOf(lines: readonly string[]): Member[] {
  return lines.flatMap((line, i) => (/^ {2}(?!\/\*\*| \*)\S.*;$/.test(line) ? [{ doc: docAbove(lines, i), code: line.trim().replace(/;$/, '') }] : []));
}

/** The comment that ends on the line above, as plain text. */
function docAbove(lines: readonly string[], at: number): Doc {
  if (at === 0 || !lines[at - 1]!.trim().endsWith('*/')) return NO_DOC;
  let begin = at - 1;
  while (!lines[begin]!.trim().startsWith('/**')) begin--;
  const words = lines.slice(begin, at).map((line) => line.trim().replace(/^\/\*\*\s?|^\*(?!\/)\s?/, '').replace(/\*\/$/, '').trimEnd());
  const [text = '', ...tags] = words.join('\n').split(/^@/m);
  const tag = (name: string) => tags.find((each) => each.startsWith(name))?.slice(name.length).trim() ?? null;
  return { text: oneLine(text), throws: tag('throws') === null ? null : oneLine(tag('throws')!), example: tag('example') };
}

function oneLine(text: string): string {
  return text.trim().split('\n').map((line) => line.trim()).join(' ');
}

function sectionOf({ name, doc, code, members }: Declaration): string {
  const isStore = name === 'Store';
  // The table says it all.
  const isPlain = members.length > 0 && !code.includes('<');
  return [`## ${name}\n`, `${doc.text}\n`, ...(isPlain ? [] : [`\`\`\`ts\n${code}\n\`\`\`\n`]), ...throwsOf(doc), ...exampleOf(doc), ...(isStore ? members.map(methodOf) : tableOf(members))].join('\n');
}

function methodOf({ doc, code }: Member): string {
  const [, name] = /^(?:readonly )?(\[?[\w.]+\]?)/.exec(code)!;
  return [`### store.${name}\n`, `\`\`\`ts\n${code}\n\`\`\`\n`, `${doc.text}\n`, ...throwsOf(doc)].join('\n');
}

function throwsOf({ throws }: Doc): string[] {
  return throws === null ? [] : [`Rejects with ${throws.replace(/^as (`\w{1,40}`)/, 'what $1 rejects with')}\n`];
}

function exampleOf({ example }: Doc): string[] {
  return example === null ? [] : [`\`\`\`ts\n${example}\n\`\`\`\n`];
}

function tableOf(members: readonly Member[]): string[] {
  if (members.length === 0) return [];
  const rows = members.map(({ doc, code }) => {
    const [, name, type] = /^(?:readonly )?(\w+\??): (.*)$/.exec(code)!;
    return `| \`${name}\` | \`${type!.replaceAll('|', '\\|')}\` | ${doc.text} |`;
  });
  return [`| member | type | |\n|---|---|---|\n${rows.join('\n')}\n`];
}
