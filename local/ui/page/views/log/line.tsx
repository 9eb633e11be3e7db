import { useMemo } from 'preact/hooks';
import { Badge } from '../../parts/badge.tsx';
import type { Tone } from '../../parts/badge.tsx';
import { Code } from '../../parts/code.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { absoluteText, exactClockText } from '../../lib/format.ts';
import { lineText, valueText } from './log-lines.ts';
import type { LogLineLevel, LogLineView } from '../../../../../handlers/documents/node.ts';

const TONES: Readonly<Record<LogLineLevel, Tone>> = { debug: 'plain', info: 'info', warn: 'warn', error: 'bad' };
/** Characters of the fields that stand behind the message. */
const SUMMARY_CHARACTERS = 300;

export interface LineProps {
  readonly line: LogLineView;
  readonly isOpen: boolean;
  readonly isCurrent: boolean;
  readonly onToggle: (sequence: number) => void;
  readonly onFocus: (sequence: number) => void;
}

/** One line; open, with its fields and what was thrown. Nothing of it is made anew while others come. */
export function LogLine(props: LineProps) {
  const { line, isOpen, isCurrent } = props;
  return useMemo(() => drawn(props), [line, isOpen, isCurrent]);
}

function drawn({ line, isOpen, isCurrent, onToggle, onFocus }: LineProps) {
  const { sequence, time, level, message, exception } = line;
  const ms = Date.parse(time);
  return (
    <li class={`log-line ${level}`}>
      <button
        type="button"
        class="log-head"
        aria-expanded={isOpen}
        tabIndex={isCurrent ? 0 : -1}
        data-sequence={sequence}
        onFocus={() => onFocus(sequence)}
        onClick={() => {
          // Text that is being chosen is to be copied.
          if (getSelection()?.type !== 'Range') onToggle(sequence);
        }}
      >
        <time class="log-time" dateTime={time} title={absoluteText(ms)}>
          {exactClockText(ms)}
        </time>
        <span class="log-level">
          <Badge tone={TONES[level]}>{level}</Badge>
        </span>
        <span class="log-message">
          {message}
          <span class="log-fields">{summaryOf(line)}</span>
        </span>
      </button>
      {isOpen && (
        <div class="log-inside">
          <Definitions
            isWide
            items={[
              [
                'Time',
                <>
                  {absoluteText(ms)} <span class="faint mono">{time}</span>
                </>,
              ],
              ...Object.entries(line.fields).map(
                ([name, value]) =>
                  [<span class="mono">{name}</span>, <span class="break log-value">{valueText(value)}</span>] as const,
              ),
            ]}
          />
          {exception !== undefined && <Exception text={exception} />}
          <div class="row">
            <CopyButton text={() => lineText(line)} label="Copy this line" />
          </div>
        </div>
      )}
    </li>
  );
}

function summaryOf({ fields, exception }: LogLineView): string {
  let text = '';
  for (const [name, value] of Object.entries(fields)) {
    text += `  ${name}=${valueText(value)}`;
    if (text.length > SUMMARY_CHARACTERS) return `${text.slice(0, SUMMARY_CHARACTERS)}…`;
  }
  return exception === undefined
    ? text
    : `${text}  ${exception.slice(0, exception.indexOf('\n') < 0 ? SUMMARY_CHARACTERS : Math.min(exception.indexOf('\n'), SUMMARY_CHARACTERS))}`;
}

/** How the node writes that an error has another one behind it. */
const CAUSE = '\n ---> ';

/** What was thrown, and what was behind that: each with what it says first, and where it came from. */
function Exception({ text }: { readonly text: string }) {
  return (
    <div class="stack tight">
      {text.split(CAUSE).map((part, i) => {
        const end = part.search(/\n {1,8}at /);
        const says = end < 0 ? part : part.slice(0, end);
        return (
          <div key={i} class="log-exception">
            <p class="break">
              <strong>
                {i === 0 ? '' : 'Caused by: '}
                {says}
              </strong>
            </p>
            {end >= 0 && <Code text={part.slice(end + 1).replace(/^ {4}/gm, '')} name="stack.txt" hasTools={false} />}
          </div>
        );
      })}
    </div>
  );
}
