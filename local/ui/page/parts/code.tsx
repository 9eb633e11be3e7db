import { useMemo, useState } from 'preact/hooks';
import { bytesText, countText } from '../lib/format.ts';
import { download } from '../lib/download.ts';
import { ExactNumber, parseJson } from '../lib/json.ts';
import type { Json } from '../lib/json.ts';
import { Button } from './button.tsx';
import { CopyButton } from './copy-button.tsx';

/** Characters of a text that are shown at first, and more with each press. */
const FIRST_CHARACTERS = 32_768;
const MORE_CHARACTERS = 262_144;
/** Texts beyond this are not taken apart: a tree of them would take seconds. */
const TREE_CHARACTERS_MAX = 4_194_304;
/** Members that are shown at first, and more with each press. */
const MEMBERS = 100;
/** Members and elements of a value that stand open without being asked for. */
const OPEN_MEMBERS_MAX = 40;
const OPEN_DEPTH = 2;
const STRING_CHARACTERS = 400;

/** Any text, never as HTML. `name` is that of the file that it can be saved as. */
export function Code({ text, name = 'data.txt', hasTools = true }: { readonly text: string; readonly name?: string; readonly hasTools?: boolean }) {
  const [shown, setShown] = useState(FIRST_CHARACTERS);
  const isCut = text.length > shown;
  return (
    <div class="code">
      {hasTools && <div class="code-tools"><CopyButton text={text} /><Button kind="quiet" isSmall icon="download" label={`Save as ${name}`} onClick={() => download(name, text, 'text/plain')} /></div>}
      <pre tabIndex={0} aria-label={name}>{isCut ? text.slice(0, shown) : text}</pre>
      {isCut && <div class="code-more"><span class="muted">{bytesText(shown)} of {bytesText(text.length)}</span><Button isSmall onClick={() => setShown(shown + MORE_CHARACTERS)}>Show more</Button></div>}
    </div>
  );
}

/** A JSON text as a tree that folds, or as it was sent. */
export function JsonView({ text, name = 'data.json' }: { readonly text: string; readonly name?: string }) {
  const [isRaw, setRaw] = useState(false);
  const value = useMemo(() => (text.length > TREE_CHARACTERS_MAX ? undefined : parseJson(text)), [text]);
  if (value === undefined) return <Code text={text} name={name} />;
  return (
    <div class="code">
      <div class="code-tools">
        <Button kind="quiet" isSmall isPressed={isRaw} onClick={() => setRaw(!isRaw)}>{isRaw ? 'Tree' : 'As sent'}</Button>
        <CopyButton text={text} /><Button kind="quiet" isSmall icon="download" label={`Save as ${name}`} onClick={() => download(name, text)} />
      </div>
      {isRaw ? <Code text={text} name={name} hasTools={false} /> : <div class="json" tabIndex={0} role="group" aria-label={name}><Node value={value} depth={0} /></div>}
    </div>
  );
}

function isTree(value: Json): value is readonly Json[] | { readonly [name: string]: Json } {
  return typeof value === 'object' && value !== null && !(value instanceof ExactNumber);
}

function Node({ name, value, depth }: { readonly name?: string; readonly value: Json; readonly depth: number }) {
  const isOwn = isTree(value);
  const entries = isOwn ? Object.entries(value) : [];
  const [isOpen, setOpen] = useState(depth === 0 || (depth < OPEN_DEPTH && entries.length <= OPEN_MEMBERS_MAX));
  const [shown, setShown] = useState(MEMBERS);
  const label = name === undefined ? null : <span class="json-name">{name}</span>;
  if (!isOwn) return <div class="json-line">{label}{label !== null && ': '}<Leaf value={value} /></div>;
  const isArray = Array.isArray(value);
  const count = countText(entries.length, isArray ? 'element' : 'member');
  if (entries.length === 0) return <div class="json-line">{label}{label !== null && ': '}<span class="faint">{isArray ? '[ ]' : '{ }'}</span></div>;
  return (
    <div class="json-node">
      <button type="button" class="json-line json-fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class="json-mark" aria-hidden="true" />{label}{label !== null && ': '}<span class="faint">{isArray ? '[' : '{'} {count} {isArray ? ']' : '}'}</span>
      </button>
      {isOpen && (
        <div class="json-inside">
          {entries.slice(0, shown).map(([key, member]) => <Node key={key} name={key} value={member} depth={depth + 1} />)}
          {entries.length > shown && <Button isSmall kind="quiet" onClick={() => setShown(shown + MEMBERS * 5)}>{`Show more of ${count}`}</Button>}
        </div>
      )}
    </div>
  );
}

function Leaf({ value }: { readonly value: Json }) {
  const [isWhole, setWhole] = useState(false);
  if (value instanceof ExactNumber) return <span class="json-number">{value.source}</span>;
  if (typeof value !== 'string') return <span class={value === null ? 'faint' : `json-${typeof value}`}>{String(value)}</span>;
  const isCut = !isWhole && value.length > STRING_CHARACTERS;
  return <><span class="json-string">{JSON.stringify(isCut ? value.slice(0, STRING_CHARACTERS) : value)}</span>{isCut && <Button isSmall kind="quiet" onClick={() => setWhole(true)}>{`… all ${bytesText(value.length)}`}</Button>}</>;
}
