import { useEffect, useRef, useState } from 'preact/hooks';
import { errorOf } from '../../api/problem-text.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { mayUse } from '../../api/page-session.ts';
import { countText, numberText } from '../../lib/format.ts';
import { hrefOf } from '../../lib/router.ts';
import { ExactNumber, parseJson } from '../../lib/json.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { Failure } from '../../parts/empty-state.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { Name } from '../../parts/name.tsx';
import { Time } from '../../parts/time.tsx';
import { viewBy } from './conditions.tsx';
import { readPage } from './event-feed.ts';
import type { Source } from './event-feed.ts';
import { addressOf, ALL, viewOf } from './name-search.ts';
import { pageLines } from './previews.ts';
import type { LineDocument } from '../../../../../handlers/documents/streams.ts';
import { tokenOf } from './read-event.ts';

/** What an event belongs to: the event that caused it, and all that have the same correlation. */
interface Tie {
  readonly causation: string | null;
  readonly correlation: string | null;
}

export function tieOf(metadata: string | null): Tie {
  if (metadata === null || !metadata.includes('Id')) return { causation: null, correlation: null };
  const value = parseJson(metadata);
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof ExactNumber)
    return { causation: null, correlation: null };
  const text = (name: string) => {
    const found = (value as Readonly<Record<string, unknown>>)[name];
    return typeof found === 'string' && found !== '' ? found : null;
  };
  return { causation: text('$causationId'), correlation: text('$correlationId') };
}

/** Events that are looked at with each press, and the most characters of them. */
const LOOK_EVENTS = 2_000;
const LOOK_CHARACTERS = 8_388_608;
const PAGE_EVENTS = 200;

interface Found {
  readonly line: Pick<LineDocument, 'eventId' | 'eventType' | 'eventNumber' | 'streamId' | 'updated'>;
  readonly as: 'cause' | 'same';
}

export function Related({ line, tie }: { readonly line: LineDocument; readonly tie: Tie }) {
  const { causation, correlation } = tie;
  const [found, setFound] = useState<readonly Found[]>([]);
  const [looked, setLooked] = useState(0);
  const [state, setState] = useState<'idle' | 'looking' | 'done'>('idle');
  const [failure, setFailure] = useState<ApiError | null>(null);
  const next = useRef<string | null>(null);
  const ending = useRef(new AbortController());
  const isAll = mayUse('administrators');

  useEffect(() => {
    const controller = new AbortController();
    ending.current = controller;
    if (correlation !== null && causation !== null) {
      const source: Source = { base: addressOf(ALL), query: { correlation }, resolvesLinks: false };
      // One page and no more: where correlations have no index the node reads the log for it.
      readPage(source, tokenOf(line.position), 'backward', PAGE_EVENTS, { signal: controller.signal }).then(
        ({ rows }) => {
          const cause = rows.find(({ id }) => id === causation);
          if (cause !== undefined)
            setFound([
              {
                as: 'cause',
                line: {
                  eventId: cause.id,
                  eventType: cause.type,
                  eventNumber: cause.number ?? 0,
                  streamId: cause.stream,
                  updated: cause.writtenAt,
                },
              },
            ]);
        },
        () => {
          // The search looks for it, too.
        },
      );
    }
    return () => controller.abort();
  }, [line.eventId]);

  const look = async () => {
    const { signal } = ending.current;
    setState('looking');
    setFailure(null);
    const source: Source = {
      base: isAll ? '/streams/%24all' : addressOf(line.streamId),
      query: {},
      resolvesLinks: false,
    };
    next.current ??= isAll ? tokenOf(line.position) : String(line.eventNumber);
    let left = LOOK_EVENTS;
    let characters = 0;
    try {
      while (left > 0 && characters < LOOK_CHARACTERS && next.current !== null) {
        let last: LineDocument | null = null;
        const before = left;
        const matches: Found[] = [];
        for await (const some of pageLines(source, next.current, 'backward', PAGE_EVENTS, signal)) {
          for (const one of some) {
            last = one;
            left--;
            characters += (one.data?.length ?? 0) + (one.metaData?.length ?? 0);
            if (one.eventId === line.eventId) continue;
            const as =
              one.eventId === causation
                ? 'cause'
                : correlation !== null &&
                    one.metaData?.includes(correlation) === true &&
                    tieOf(one.metaData).correlation === correlation
                  ? 'same'
                  : null;
            const { eventId, eventType, eventNumber, streamId, updated } = one;
            if (as !== null) matches.push({ as, line: { eventId, eventType, eventNumber, streamId, updated } });
          }
        }
        if (last === null) next.current = null;
        else if (isAll) next.current = tokenOf(last.position);
        else next.current = last.positionEventNumber === 0 ? null : String(last.positionEventNumber - 1);
        const read = before - left;
        setLooked((count) => count + read);
        setFound((known) => [
          ...known,
          ...matches.filter((one) => !known.some(({ line: other }) => other.eventId === one.line.eventId)),
        ]);
        if (matches.some(({ as }) => as === 'cause') && correlation === null) next.current = null;
      }
      setState(next.current === null ? 'done' : 'idle');
    } catch (thrown) {
      if (signal.aborted) return;
      setFailure(errorOf(thrown));
      setState('idle');
    }
  };

  return (
    <Card title="Related events">
      <div class="stack">
        <dl class="definitions wide">
          {causation !== null && (
            <div>
              <dt>Caused by</dt>
              <dd class="row">
                <code class="break">{causation}</code>
                <CopyButton text={causation} label="Copy the id of the cause" />
              </dd>
            </div>
          )}
          {correlation !== null && (
            <div>
              <dt>Correlation</dt>
              <dd class="row wrap">
                <span class="row">
                  <code class="break">{correlation}</code>
                  <CopyButton text={correlation} label="Copy the correlation id" />
                </span>
                <a class="nowrap" href={hrefOf(viewBy('correlation', correlation))}>
                  All its events
                </a>
              </dd>
            </div>
          )}
        </dl>
        {found.length > 0 && (
          <ul class="related" aria-label="Related events found">
            {found.map(({ as, line: one }) => (
              <li key={one.eventId} class="row wrap">
                {as === 'cause' && <Badge tone="accent">cause</Badge>}
                <a class="truncate" href={hrefOf(viewOf(one.streamId, one.eventNumber))}>
                  <Name text={one.eventType} />
                </a>
                <span class="faint truncate">
                  {numberText(one.eventNumber)}@<Name text={one.streamId} />
                </span>
                <span class="muted push">
                  <Time at={one.updated} />
                </span>
              </li>
            ))}
          </ul>
        )}
        {failure !== null && <Failure error={failure} />}
        <div class="row wrap">
          {state !== 'done' && (
            <Button isSmall icon="search" isBusy={state === 'looking'} onClick={() => void look()}>
              {looked === 0 ? (isAll ? 'Search all streams' : 'Search this stream') : 'Search further back'}
            </Button>
          )}
          <span class="muted small" role="status">
            {looked > 0 &&
              `${countText(looked, 'earlier event')} searched${state === 'done' ? ', all there are' : ''}${found.length === 0 ? ': nothing found' : ''}.`}
          </span>
        </div>
      </div>
    </Card>
  );
}
