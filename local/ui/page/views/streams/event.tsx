import { useEffect, useState } from 'preact/hooks';
import type { ViewProps } from '../../views.ts';
import { mayUse } from '../../api/page-session.ts';
import { errorOf } from '../../api/problem-text.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { numberText } from '../../lib/format.ts';
import { goTo, hrefOf, setQuery } from '../../lib/router.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { EmptyState, ErrorState, Notice } from '../../parts/empty-state.tsx';
import { Name } from '../../parts/name.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { categoryOf, FoundBy, tagsOf } from './attributes.tsx';
import { readPage } from './event-feed.ts';
import { addressOf, isReachable, viewOf } from './name-search.ts';
import { JsonOrText, Payload } from './payload.tsx';
import { readEvent } from './read-event.ts';
import type { ShownEvent } from './read-event.ts';
import { keptNames, RedactDialog } from './redact-dialog.tsx';
import { Refused } from './refused.tsx';
import { Related, tieOf } from './related.tsx';

/** One event with all that it holds. */
export default function Event({ params, query }: ViewProps) {
  const { stream = '', event = '' } = params;
  if (!/^\d{1,15}$/.test(event) || !isReachable(stream))
    return (
      <EmptyState
        isWhole
        icon="event"
        title="This is not an event number"
        action={<Button href={viewOf(stream)}>Go to the stream</Button>}
      >
        Event numbers start at 0.
      </EmptyState>
    );
  return <Shown stream={stream} number={Number(event)} resolvesLinks={query.get('links') !== 'own'} />;
}

interface Loaded {
  readonly key: string;
  readonly event: ShownEvent | null;
  readonly error: ApiError | null;
}

function Shown({
  stream,
  number,
  resolvesLinks,
}: {
  readonly stream: string;
  readonly number: number;
  readonly resolvesLinks: boolean;
}) {
  const key = `${number} ${resolvesLinks} ${stream}`;
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    readEvent(stream, number, resolvesLinks, ending.signal).then(
      (event) => setLoaded({ key, event, error: null }),
      (thrown: unknown) => {
        if (!ending.signal.aborted) setLoaded({ key, event: null, error: errorOf(thrown) });
      },
    );
    return () => ending.abort();
  }, [key, attempt]);
  const step = (by: -1 | 1) =>
    neighbour(stream, number, by).then(
      (next) => {
        if (next !== null) goTo(viewOf(stream, next) + (resolvesLinks ? '' : '?links=own'));
        else toast(by < 0 ? 'No event before this one is left' : 'There is no event after this one yet');
      },
      (thrown: unknown) => toast(errorOf(thrown).message, 'bad'),
    );
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        (event.target as Element).closest('input, textarea, select, dialog, pre, [role=menu], [role=group]') !== null
      )
        return;
      if (event.key === 'ArrowLeft' || event.key === 'k') void step(-1);
      else if (event.key === 'ArrowRight' || event.key === 'j') void step(1);
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, [key]);

  const event = loaded?.key === key ? loaded.event : null;
  const error = loaded?.key === key ? loaded.error : null;
  return (
    <>
      <ViewHead
        title={<>Event {numberText(number)}</>}
        about={
          <>
            of{' '}
            <a class="break" href={hrefOf(`${viewOf(stream)}?from=${number}&at=${number}`)}>
              <Name text={stream} />
            </a>
          </>
        }
        actions={
          <div class="row" role="group" aria-label="Events">
            <Button icon="left" label="Previous event" isDisabled={number === 0} onClick={() => void step(-1)} />
            <Button icon="right" label="Next event" onClick={() => void step(1)} />
          </div>
        }
      >
        {event !== null && (
          <Badge tone="accent" title={event.line.eventType}>
            <span class="truncate type-mark">
              <Name text={event.line.eventType} />
            </span>
          </Badge>
        )}
      </ViewHead>
      {error !== null ? (
        <Card>
          <Failure stream={stream} number={number} error={error} onRetry={() => setAttempt(attempt + 1)} />
        </Card>
      ) : event === null ? (
        <Card>
          <Skeleton lines={8} />
        </Card>
      ) : (
        <Parts
          key={key}
          stream={stream}
          event={event}
          resolvesLinks={resolvesLinks}
          onChanged={() => setAttempt(attempt + 1)}
        />
      )}
    </>
  );
}

function Failure({
  stream,
  number,
  error,
  onRetry,
}: {
  readonly stream: string;
  readonly number: number;
  readonly error: ApiError;
  readonly onRetry: () => void;
}) {
  if (error.code === 'access_denied') return <Refused stream={stream} error={error} />;
  if (error.code !== 'event_not_found' && error.code !== 'stream_not_found')
    return <ErrorState error={error} what="The event" onRetry={onRetry} />;
  return (
    <EmptyState
      icon="event"
      title="There is no such event"
      action={
        <div class="row">
          <Button href={`${viewOf(stream)}?from=${number}&at=${number}`}>Events around it</Button>
          <Button onClick={onRetry} icon="refresh">
            Try again
          </Button>
        </div>
      }
    >
      <span class="break">It is gone, or it has not been written yet.</span>
    </EmptyState>
  );
}

function Parts({
  stream,
  event: { line, number, isResolved, link },
  resolvesLinks,
  onChanged,
}: {
  readonly stream: string;
  readonly event: ShownEvent;
  readonly resolvesLinks: boolean;
  readonly onChanged: () => void;
}) {
  const [isRedacting, setRedacting] = useState(false);
  const tie = tieOf(line.metaData);
  const category = categoryOf(line.streamId);
  const tags = tagsOf(line.metaData);
  const name = `metadata-${number}.json`;
  return (
    <>
      {isResolved && (
        <Notice
          tone="info"
          action={
            <Button isSmall onClick={() => setQuery({ links: 'own' })}>
              Show the link
            </Button>
          }
        >
          This is a link. Shown is its target:{' '}
          <a class="break" href={hrefOf(viewOf(line.streamId, line.eventNumber))}>
            event {numberText(line.eventNumber)} of <Name text={line.streamId} />
          </a>
          .
        </Notice>
      )}
      {link !== null && (
        <Notice
          tone={resolvesLinks ? 'warn' : 'info'}
          action={
            !resolvesLinks && (
              <Button isSmall onClick={() => setQuery({ links: null })}>
                Show its target
              </Button>
            )
          }
        >
          {resolvesLinks ? 'The target of this link is gone, or you may not read it: ' : 'This is a link to '}
          <a class="break" href={hrefOf(viewOf(link.stream, link.number))}>
            event {numberText(link.number)} of <Name text={link.stream} />
          </a>
          .
        </Notice>
      )}
      <div class="event-parts">
        <div class="stack">
          <Payload line={line} stream={stream} number={number} resolvesLinks={resolvesLinks} />
          {(tie.causation !== null || tie.correlation !== null) && <Related key={line.eventId} line={line} tie={tie} />}
        </div>
        <div class="stack">
          <Card
            title="Event"
            actions={
              isRedactable(line) && (
                <Button kind="quiet" isSmall icon="erase" onClick={() => setRedacting(true)}>
                  Redact…
                </Button>
              )
            }
          >
            <Definitions
              items={[
                [
                  'Id',
                  <span class="row id">
                    <code class="break">{line.eventId}</code>
                    <CopyButton text={line.eventId} label="Copy the id" />
                  </span>,
                ],
                ['Type', <FoundBy kind="eventType" value={line.eventType} />],
                category === null ? null : ['Category', <FoundBy kind="category" value={category} />],
                tags.length === 0
                  ? null
                  : [
                      'Tags',
                      <ul class="stack tight">
                        {tags.map((tag) => (
                          <li key={tag}>
                            <FoundBy kind="tag" value={tag} />
                          </li>
                        ))}
                      </ul>,
                    ],
                isResolved
                  ? [
                      'Number',
                      <a href={hrefOf(viewOf(line.streamId, line.eventNumber))}>
                        {numberText(line.eventNumber)}@<Name text={line.streamId} />
                      </a>,
                    ]
                  : null,
                ['Written', <Time at={line.updated} show="exact" />],
                ['Form', line.isJson && line.data !== null ? 'JSON' : 'binary or text'],
                ['Position', <span class="mono">{line.position}</span>],
              ]}
            />
            <RedactDialog
              line={isRedacting ? line : null}
              onClose={() => setRedacting(false)}
              onDone={(remains) => {
                setRedacting(false);
                toast(remains);
                onChanged();
              }}
            />
          </Card>
          <Card title="Metadata">
            {line.metaData === null || line.metaData === '' ? (
              <p class="muted">None.</p>
            ) : (
              <JsonOrText text={line.metaData} name={name} />
            )}
          </Card>
          {line.linkMetaData !== null && line.linkMetaData !== '' && (
            <Card title="Metadata of the link">
              <JsonOrText text={line.linkMetaData} name={`link-${name}`} />
            </Card>
          )}
        </div>
      </div>
    </>
  );
}

/** Administrators may; events of the store's own streams are refused, and of one that is redacted little is left. */
function isRedactable({ streamId, isRedacted, metaData }: ShownEvent['line']): boolean {
  return mayUse('administrators') && !streamId.startsWith('$') && (!isRedacted || keptNames(metaData).length > 0);
}

/** The number of the event before or behind, over what is gone. */
async function neighbour(stream: string, number: number, by: -1 | 1): Promise<number | null> {
  if (by < 0 && number === 0) return null;
  const { rows } = await readPage(
    { base: addressOf(stream), query: {}, resolvesLinks: false },
    String(number + by),
    by < 0 ? 'backward' : 'forward',
    1,
  );
  return rows[0]?.number ?? null;
}
