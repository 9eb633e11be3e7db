import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { put } from '../../api/page-client.ts';
import { errorOf } from '../../api/problem-text.ts';
import { countText, numberText } from '../../lib/format.ts';
import { download } from '../../lib/save-as.ts';
import { setQuery } from '../../lib/router.ts';
import { Button } from '../../parts/button.tsx';
import { ViewHead } from '../../parts/card.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { EmptyState, ErrorState, Notice } from '../../parts/empty-state.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { SearchField } from '../../parts/search-field.tsx';
import { toast } from '../../parts/toast.tsx';
import type { ViewProps } from '../../views.ts';
import { fits, LEVELS, lineText, useTail, wordsOf } from './log-lines.ts';
import type { Tail } from './log-lines.ts';
import type { LogLineLevel, LogLineView } from '../../../../../handlers/documents/node.ts';
import { LogLine } from './line.tsx';

/** What the node has logged last, and what it logs. */
export default function Log({ query }: ViewProps) {
  const [isPaused, setPaused] = useState(false);
  const { tail, error, refresh, loadOlder } = useTail(isPaused);
  const search = query.get('q') ?? '';
  const level = LEVELS.find((each) => each === query.get('level')) ?? 'debug';
  const rows = useMemo(() => {
    const words = wordsOf(search);
    return (tail?.lines ?? []).filter((line) => fits(line, level, words));
  }, [tail?.lines, search, level]);
  if (tail === null)
    return (
      <>
        <ViewHead title="Log" />
        {error === null ? <Skeleton lines={12} /> : <ErrorState error={error} what="The log" onRetry={refresh} />}
      </>
    );
  return (
    <div class="log">
      <ViewHead
        title="Log"
        about="The latest log lines of this node, from memory. Files hold more where the option Log names a directory for them."
        actions={
          <>
            <NodeLevel level={tail.level} onChanged={refresh} />
            <CopyButton text={() => rows.map(lineText).join('\n')} label="Copy the lines shown" isSmall={false} />
            <Button
              kind="quiet"
              icon="download"
              label="Save the lines shown"
              onClick={() =>
                download(
                  'skua-log.ndjson',
                  rows.map((line) => `${JSON.stringify(line)}\n`).join(''),
                  'application/x-ndjson',
                )
              }
            />
          </>
        }
      />
      {error !== null && !error.isPassing && (
        <Notice tone="bad" title="The log could not be read on">
          {error.message}
        </Notice>
      )}
      <div class="toolbar">
        <SearchField label="Search the lines" value={search} onInput={(q) => setQuery({ q })} />
        <Button icon={isPaused ? 'play' : 'pause'} onClick={() => setPaused(!isPaused)}>
          {isPaused ? 'Resume' : 'Pause'}
        </Button>
        <div class="segments" role="group" aria-label="Minimum level shown">
          {LEVELS.map((each) => (
            <Button
              key={each}
              isSmall
              kind="quiet"
              isPressed={each === level}
              onClick={() => setQuery({ level: each === 'debug' ? null : each })}
            >
              {LEVEL_LABELS[each]}
            </Button>
          ))}
        </div>
        <span class="push faint small">
          {rows.length === tail.lines.length
            ? countText(rows.length, 'line')
            : `${numberText(rows.length)} of ${countText(tail.lines.length, 'line')}`}
        </span>
      </div>
      {tail.missed > 0 && (
        <Notice tone="warn">
          {countText(tail.missed, 'line')} came too fast to be shown here. The log files have them.
        </Notice>
      )}
      <Lines
        rows={rows}
        tail={tail}
        isPaused={isPaused}
        isNarrowed={search !== '' || level !== 'debug'}
        onOlder={loadOlder}
      />
    </div>
  );
}

/** From which level on lines are shown. */
const LEVEL_LABELS: Readonly<Record<LogLineLevel, string>> = {
  debug: 'All',
  info: 'Info',
  warn: 'Warnings',
  error: 'Errors',
};

/** What the node logs at all. */
function NodeLevel({ level, onChanged }: { readonly level: string; readonly onChanged: () => void }) {
  const [isBusy, setBusy] = useState(false);
  const change = async (next: string) => {
    setBusy(true);
    try {
      await put('/admin/log/level', { level: next });
      toast(`The node logs ${next === 'debug' ? 'everything' : `${next} and above`} until it restarts`);
    } catch (thrown) {
      toast(errorOf(thrown).message, 'bad');
    }
    setBusy(false);
    onChanged();
  };
  return (
    <span
      class="row"
      title="What the node logs at all, log files included. Lasts until the node restarts, or its configuration is reloaded with another level; set the option LogLevel to keep it."
    >
      <label class="small muted nowrap" for="log-level">
        Node logs
      </label>
      <select
        id="log-level"
        class="plain"
        value={level}
        disabled={isBusy}
        aria-describedby="log-level-about"
        onChange={(event) => void change(event.currentTarget.value)}
      >
        {level === 'off' && <option value="off">nothing</option>}
        {LEVELS.map((each) => (
          <option key={each} value={each} selected={each === level}>
            {each}
          </option>
        ))}
      </select>
      <span id="log-level-about" class="small faint nowrap">
        until it restarts
      </span>
    </span>
  );
}

/** Lines that are drawn at first, and more with each press: what is out of sight costs little, and yet not nothing. */
const DRAWN = 500;
/** So near to the end counts as being there. */
const NEAR_PX = 24;

function Lines({
  rows,
  tail,
  isPaused,
  isNarrowed,
  onOlder,
}: {
  readonly rows: readonly LogLineView[];
  readonly tail: Tail;
  readonly isPaused: boolean;
  readonly isNarrowed: boolean;
  readonly onOlder: () => Promise<void>;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const [drawn, setDrawn] = useState(DRAWN);
  const [current, setCurrent] = useState<number | null>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const lastTop = useRef(0);
  const [isLoading, setLoading] = useState(false);
  const [seen, setSeen] = useState(0);
  const last = rows.at(-1)?.sequence ?? 0;
  const shown = rows.slice(-drawn);

  const isAnyOpen = open.size > 0;
  // Lines get their heights only when they come into sight, and take more lines in a narrower window: the end is gone
  // to again whenever they have changed, not only with new ones.
  useLayoutEffect(() => {
    if (!isAtEnd) return;
    const element = scroller.current!;
    const toEnd = () => (element.scrollTop = element.scrollHeight);
    toEnd();
    // A line that was opened is to stay where it is.
    if (isAnyOpen) return;
    const watch = new ResizeObserver(toEnd);
    for (const part of [element, ...element.children]) watch.observe(part);
    return () => watch.disconnect();
  }, [rows, isAtEnd, isAnyOpen]);
  useEffect(() => {
    if (isAtEnd) setSeen(last);
  }, [isAtEnd, last]);

  const toggle = useCallback(
    (sequence: number) =>
      setOpen((before) => {
        const next = new Set(before);
        if (!next.delete(sequence)) next.add(sequence);
        return next;
      }),
    [],
  );
  const focused = useCallback((sequence: number) => setCurrent(sequence), []);
  const pressed = (event: KeyboardEvent) => {
    const heads = [...scroller.current!.querySelectorAll<HTMLElement>('.log-head')];
    const at = heads.indexOf(event.target as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: heads.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    heads[Math.max(0, Math.min(to, heads.length - 1))]?.focus();
  };
  const older = async () => {
    const element = scroller.current!;
    const below = element.scrollHeight - element.scrollTop;
    if (rows.length > drawn) setDrawn(drawn + DRAWN);
    else {
      setLoading(true);
      await onOlder().catch((thrown: unknown) => toast(errorOf(thrown).message, 'bad'));
      setLoading(false);
      setDrawn(drawn + DRAWN);
    }
    // What was in sight stays there.
    requestAnimationFrame(() => (element.scrollTop = element.scrollHeight - below));
  };
  const focusable = shown.some(({ sequence }) => sequence === current) ? current : last;
  const fresh = isAtEnd ? 0 : rows.filter(({ sequence }) => sequence > seen).length;
  return (
    <div class="log-frame">
      <div
        class="log-scroller"
        ref={scroller}
        role="region"
        aria-label="Lines of the log"
        tabIndex={rows.length === 0 ? 0 : -1}
        onKeyDown={pressed}
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          if (scrollHeight - scrollTop - clientHeight < NEAR_PX) setAtEnd(true);
          // Only who scrolls up leaves the end; lines that grow move it away.
          else if (scrollTop < lastTop.current) setAtEnd(false);
          lastTop.current = scrollTop;
        }}
      >
        {(rows.length > drawn || tail.older > 0) && (
          <div class="log-older">
            <Button isSmall icon="up" isBusy={isLoading} onClick={() => void older()}>
              {rows.length > drawn
                ? `Show ${countText(rows.length - drawn, 'older line')}`
                : `Load older lines (${numberText(tail.older)} more on the node)`}
            </Button>
          </div>
        )}
        {rows.length === 0 ? (
          <EmptyState
            icon={isNarrowed ? 'search' : 'logs'}
            title={isNarrowed ? 'No lines match' : 'Nothing logged yet'}
            {...(isNarrowed && {
              action: <Button onClick={() => setQuery({ q: null, level: null })}>Show all</Button>,
            })}
          >
            {isNarrowed
              ? 'There are lines at other levels or with other words.'
              : 'Lines appear here as the node writes them.'}
          </EmptyState>
        ) : (
          <ol>
            {shown.map((line) => (
              <LogLine
                key={line.sequence}
                line={line}
                isOpen={open.has(line.sequence)}
                isCurrent={line.sequence === focusable}
                onToggle={toggle}
                onFocus={focused}
              />
            ))}
          </ol>
        )}
      </div>
      {!isAtEnd && (
        <div class="log-end">
          <Button isSmall kind="primary" icon="down" onClick={() => setAtEnd(true)}>
            {fresh > 0 ? countText(fresh, 'new line') : 'Jump to the end'}
          </Button>
        </div>
      )}
      {isPaused && <div class="log-paused small">Paused</div>}
    </div>
  );
}
