import { useId, useLayoutEffect, useRef } from 'preact/hooks';

const INDENT = '  ';

export interface ScriptEditorProps {
  readonly name: string;
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  /** A line with an error, from 1. */
  readonly markedLine?: number | null;
  readonly rows?: number;
  readonly isReadOnly?: boolean;
}

/**
 * JavaScript in a plain field with numbers of lines. Tab indents; Escape, and then Tab, goes on to the next control.
 */
export function ScriptEditor({
  name,
  label,
  value,
  onInput,
  markedLine = null,
  rows = 14,
  isReadOnly = false,
}: ScriptEditorProps) {
  const id = useId();
  const gutter = useRef<HTMLDivElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const isLeaving = useRef(false);
  const lines = value.split('\n').length;
  const follow = () => {
    gutter.current!.scrollTop = area.current!.scrollTop;
  };
  useLayoutEffect(follow, [lines]);
  const pressed = (event: KeyboardEvent) => {
    const element = area.current!;
    if (event.key === 'Escape') {
      // A dialog around it stays open.
      event.stopPropagation();
      event.preventDefault();
      isLeaving.current = true;
      return;
    }
    const isLeft = isLeaving.current;
    if (event.key !== 'Shift') isLeaving.current = false;
    if (isReadOnly || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Tab' && !isLeft) {
      event.preventDefault();
      if (event.shiftKey || element.selectionStart !== element.selectionEnd) shift(element, event.shiftKey);
      else insert(INDENT);
    } else if (event.key === 'Enter') {
      const before = element.value.slice(0, element.selectionStart);
      const line = before.slice(before.lastIndexOf('\n') + 1);
      const indent = line.slice(0, line.length - line.trimStart().length);
      event.preventDefault();
      insert(`\n${indent}${/[[({]$/.test(line) ? INDENT : ''}`);
    }
  };
  return (
    <div class="script">
      <label for={id} class="hidden-visually">
        {label}
      </label>
      <div class="script-gutter" ref={gutter} aria-hidden="true">
        {Array.from({ length: lines }, (_, i) => (
          <div key={i} class={i + 1 === markedLine ? 'marked' : ''}>
            {i + 1}
          </div>
        ))}
      </div>
      <textarea
        id={id}
        ref={area}
        name={name}
        rows={rows}
        class="mono"
        wrap="off"
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        readOnly={isReadOnly}
        value={value}
        aria-describedby={`${id}-about`}
        onInput={(event) => onInput(event.currentTarget.value)}
        onScroll={follow}
        onKeyDown={pressed}
        onBlur={() => (isLeaving.current = false)}
      />
      <span id={`${id}-about`} class="hidden-visually">
        Tab indents. Press Escape, then Tab to move to the next control.
      </span>
    </div>
  );
}

/** As if it were typed, so that it can be undone. */
function insert(text: string): void {
  document.execCommand('insertText', false, text);
}

/** Moves the chosen lines to the right, or to the left. */
function shift(area: HTMLTextAreaElement, isLeft: boolean): void {
  const { value, selectionStart, selectionEnd } = area;
  const from = value.lastIndexOf('\n', selectionStart - 1) + 1;
  const lines = value.slice(from, selectionEnd).split('\n');
  const moved = lines.map((line) => (isLeft ? line.replace(/^ {1,2}/, '') : INDENT + line)).join('\n');
  if (moved === value.slice(from, selectionEnd)) return;
  area.setSelectionRange(from, selectionEnd);
  insert(moved);
  area.setSelectionRange(from, from + moved.length);
}
