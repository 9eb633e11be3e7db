import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { bytesText, countText } from '../lib/format.ts';
import { download } from '../lib/save-as.ts';
import { isJson, kindAt, membersOf, startOf } from '../lib/json-tree.ts';
import type { Members } from '../lib/json-tree.ts';
import { Button } from './button.tsx';
import { CopyButton } from './copy-button.tsx';

/** Characters of a text that are shown at first, and more with each press. */
const FIRST_CHARACTERS = 32_768;
const MORE_CHARACTERS = 262_144;
/** Texts beyond this are not taken apart: no event has as much. */
const TREE_CHARACTERS_MAX = 16_777_216;
/** Members that are shown at first, and more with each press. */
const MEMBERS = 100;
/** Members and elements of a value that stand open without being asked for. */
const OPEN_MEMBERS_MAX = 40;
const OPEN_DEPTH = 2;
const STRING_CHARACTERS = 400;

/** Any text, never as HTML. `name` is that of the file that it can be saved as. */
export function Code({
  text,
  name = 'data.txt',
  hasTools = true,
}: {
  readonly text: string;
  readonly name?: string;
  readonly hasTools?: boolean;
}) {
  const [shown, setShown] = useState(FIRST_CHARACTERS);
  const isCut = text.length > shown;
  return (
    <div class="code">
      {hasTools && (
        <div class="code-tools">
          <CopyButton text={text} />
          <Button
            kind="quiet"
            isSmall
            icon="download"
            label={`Save as ${name}`}
            onClick={() => download(name, text, 'text/plain')}
          />
        </div>
      )}
      <pre tabIndex={0} aria-label={name}>
        {isCut ? text.slice(0, shown) : text}
      </pre>
      {isCut && (
        <div class="code-more">
          <span class="muted">
            {bytesText(shown)} of {bytesText(text.length)}
          </span>
          <Button isSmall onClick={() => setShown(shown + MORE_CHARACTERS)}>
            Show more
          </Button>
        </div>
      )}
    </div>
  );
}

/** A JSON text as a tree that folds, or as it was sent. `note`: what is said where it is no JSON. */
export function JsonView({
  text,
  name = 'data.json',
  note,
}: {
  readonly text: string;
  readonly name?: string;
  readonly note?: ComponentChildren;
}) {
  const [isRaw, setRaw] = useState(false);
  const isTree = useMemo(() => text.length <= TREE_CHARACTERS_MAX && isJson(text), [text]);
  if (!isTree)
    return (
      <>
        {note}
        <Code text={text} name={name} />
      </>
    );
  return (
    <div class="code">
      <div class="code-tools">
        <Button kind="quiet" isSmall isPressed={isRaw} onClick={() => setRaw(!isRaw)}>
          {isRaw ? 'Tree' : 'As sent'}
        </Button>
        <CopyButton text={text} />
        <Button kind="quiet" isSmall icon="download" label={`Save as ${name}`} onClick={() => download(name, text)} />
      </div>
      {isRaw ? (
        <Code text={text} name={name} hasTools={false} />
      ) : (
        <div class="json" tabIndex={0} role="group" aria-label={name}>
          <Node text={text} start={startOf(text)} end={text.length} depth={0} />
        </div>
      )}
    </div>
  );
}

interface ValueProps {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

function Node({ name, text, start, end, depth }: ValueProps & { readonly name?: string; readonly depth: number }) {
  const kind = kindAt(text, start);
  const isOwn = kind === 'object' || kind === 'list';
  const [shown, setShown] = useState(MEMBERS);
  const [asked, setOpen] = useState<boolean | null>(null);
  const { count, members } = useMemo(() => (isOwn ? membersOf(text, start, shown) : NO_MEMBERS), [text, start, shown]);
  const label =
    name === undefined ? null : (
      <>
        <span class="json-name">{name}</span>:{' '}
      </>
    );
  if (!isOwn)
    return (
      <div class="json-line">
        {label}
        <Leaf text={text} start={start} end={end} kind={kind} />
      </div>
    );
  const [before, behind] = kind === 'list' ? '[]' : '{}';
  if (count === 0)
    return (
      <div class="json-line">
        {label}
        <span class="faint">
          {before} {behind}
        </span>
      </div>
    );
  const isOpen = asked ?? (depth === 0 || (depth < OPEN_DEPTH && count <= OPEN_MEMBERS_MAX));
  const all = countText(count, kind === 'list' ? 'element' : 'member');
  return (
    <div class="json-node">
      <button type="button" class="json-line json-fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <span class="json-mark" aria-hidden="true" />
        {label}
        <span class="faint">
          {before} {all} {behind}
        </span>
      </button>
      {isOpen && (
        <div class="json-inside">
          {members.map((member) => (
            <Node
              key={member.start}
              name={member.name}
              text={text}
              start={member.start}
              end={member.end}
              depth={depth + 1}
            />
          ))}
          {count > shown && (
            <Button isSmall kind="quiet" onClick={() => setShown(shown + MEMBERS * 5)}>{`Show more of ${all}`}</Button>
          )}
        </div>
      )}
    </div>
  );
}

const NO_MEMBERS: Members = { count: 0, members: [] };

/** A value without members, as it was written. */
function Leaf({ text, start, end, kind }: ValueProps & { readonly kind: 'string' | 'other' }) {
  const [shown, setShown] = useState(STRING_CHARACTERS);
  const source = text.slice(start, end).trimEnd();
  if (kind === 'other')
    return (
      <span
        class={source === 'null' ? 'faint' : source === 'true' || source === 'false' ? 'json-boolean' : 'json-number'}
      >
        {source}
      </span>
    );
  const isCut = source.length > shown;
  return (
    <>
      <span class="json-string">{isCut ? `${source.slice(0, shown)}…` : source}</span>
      {isCut && (
        <Button
          isSmall
          kind="quiet"
          onClick={() => setShown(shown === STRING_CHARACTERS ? FIRST_CHARACTERS : shown + MORE_CHARACTERS)}
        >{`Show more of ${bytesText(source.length)}`}</Button>
      )}
    </>
  );
}
