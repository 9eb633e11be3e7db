import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { countText, numberText } from '../../lib/format.ts';
import { setQuery } from '../../lib/router.ts';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { EmptyState, ErrorState, Notice } from '../../parts/empty-state.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { Status } from '../../parts/badge.tsx';
import { Dotted } from '../../parts/dotted.tsx';
import { EventTable } from './event-table.tsx';
import { readPage } from './event-feed.ts';
import type { Source } from './event-feed.ts';
import { JumpTo } from './jump-to.tsx';
import { addressOf, isIndex } from './name-search.ts';
import { Pager } from './pager.tsx';
import { Refused } from './refused.tsx';
import { useFeed } from './use-feed.ts';

export const PAGE_SIZES = [50, 200, 1_000] as const;

/** The events of a stream, page by page from the newest on; the newest page goes on by itself. */
export function StreamEvents({
  stream,
  query,
  changes,
  isDeleted = false,
  onTurn,
}: {
  readonly stream: string;
  readonly query: URLSearchParams;
  readonly changes: number;
  readonly isDeleted?: boolean;
  /** The stream has come to be there, or is gone. */
  readonly onTurn?: () => void;
}) {
  const resolvesLinks = query.get('links') !== 'own';
  const from = numberIn(query, 'from');
  const asked = numberIn(query, 'at');
  const count = PAGE_SIZES.find((size) => String(size) === query.get('count')) ?? PAGE_SIZES[0];
  const [isFollowed, setFollowed] = useState(true);
  const source = useMemo(
    (): Source => ({ base: addressOf(stream), query: {}, resolvesLinks }),
    [stream, resolvesLinks],
  );
  const feed = useFeed(`${stream} ${resolvesLinks}`, source, from === null ? null : String(from), count, isFollowed);
  const { page, error } = feed;
  useEffect(() => {
    if (changes > 0) feed.reload();
  }, [changes]);
  const wasAbsent = useRef<boolean | null>(null);
  useEffect(() => {
    if (feed.isLoading) return;
    if (wasAbsent.current !== null && wasAbsent.current !== (error !== null)) onTurn?.();
    wasAbsent.current = error !== null;
  }, [feed.isLoading, error]);

  const rows = page?.rows ?? [];
  const newest = rows[0]?.number ?? null;
  const oldest = rows.at(-1)?.number ?? null;
  const show = (number: number | null) => setQuery({ from: number === null ? null : String(number), at: null });
  const showNewer = async () => {
    const next = await readPage(source, String((newest ?? from ?? 0) + 1), 'forward', count);
    const top = next.rows[0]?.number ?? null;
    show(next.rows.length < count ? null : top);
  };
  const showOldest = async () => {
    const first = await readPage(source, '0', 'forward', count);
    show(first.rows[0]?.number ?? null);
  };
  const isNewest = from === null;
  const isFollowing = isFollowed && isNewest;
  // Events before it may be gone.
  const isOldest = oldest === null || oldest === 0 || page?.older == null;
  if (error !== null && error.code !== 'stream_not_found')
    return (
      <Card>
        <Failure stream={stream} error={error} onRetry={feed.reload} />
      </Card>
    );
  return (
    <Card isFlush>
      <div class="toolbar table-toolbar">
        <Button
          isSmall
          icon={isFollowing ? 'pause' : 'play'}
          isPressed={isFollowing}
          isDisabled={!isNewest}
          title={isNewest ? undefined : 'Only the newest page is followed'}
          onClick={() => setFollowed(!isFollowed)}
        >
          {isFollowing ? 'Following' : 'Follow'}
        </Button>
        <span class="muted small stream-range">
          <Dotted
            items={[
              newest === null || oldest === null ? null : rangeText(rows.length, newest, oldest),
              feed.isLive ? (
                <Status tone="ok" isLive>
                  live
                </Status>
              ) : null,
            ]}
          />
        </span>
        <span class="push row wrap">
          <JumpTo onJump={(number) => setQuery({ from: String(number), at: String(number) })} />
          <label class="row small muted">
            Links
            <select
              class="plain small"
              value={resolvesLinks ? 'resolved' : 'own'}
              onChange={(event) => setQuery({ links: event.currentTarget.value === 'own' ? 'own' : null })}
            >
              <option value="resolved">resolved</option>
              <option value="own">unresolved</option>
            </select>
          </label>
          <label class="row small muted">
            Rows
            <select
              class="plain small"
              value={String(count)}
              onChange={(event) =>
                setQuery({
                  count: event.currentTarget.value === String(PAGE_SIZES[0]) ? null : event.currentTarget.value,
                })
              }
            >
              {PAGE_SIZES.map((size) => (
                <option key={size} value={size}>
                  {numberText(size)}
                </option>
              ))}
            </select>
          </label>
          <Pager
            onNewest={isNewest ? null : () => show(null)}
            onNewer={isNewest || page === null ? null : () => void showNewer().catch(() => show(null))}
            onOlder={isOldest ? null : () => show(oldest - 1)}
            onOldest={isOldest ? null : () => void showOldest().catch(() => show(null))}
          />
        </span>
      </div>
      {feed.hasSkipped && (
        <Notice tone="info">Events arrive faster than they can be shown. Page back to see them all, or pause.</Notice>
      )}
      {asked !== null && page !== null && !feed.isLoading && newest !== asked && (
        <Notice tone="warn">
          {newest === null || newest < asked
            ? `There is no event ${numberText(asked)}: ${newest === null ? 'no event that old is left' : `the one before it is ${numberText(newest)}`}.`
            : ''}
        </Notice>
      )}
      {page === null && error === null ? (
        <div class="table-waiting">
          <Skeleton lines={8} />
        </div>
      ) : (
        <EventTable
          key={from}
          label={`Events of ${stream}`}
          rows={rows}
          previews={feed.previews}
          fresh={feed.fresh}
          chosen={asked}
          onRedacted={feed.reload}
          empty={
            <Nothing
              stream={stream}
              isDeleted={isDeleted}
              isAbsent={error !== null}
              isNewest={isNewest}
              isFollowed={feed.isLive}
              onNewest={() => show(null)}
              onOldest={() => void showOldest()}
            />
          }
        />
      )}
    </Card>
  );
}

function Failure({
  stream,
  error,
  onRetry,
}: {
  readonly stream: string;
  readonly error: Parameters<typeof ErrorState>[0]['error'];
  readonly onRetry: () => void;
}) {
  if (error.code === 'access_denied') return <Refused stream={stream} error={error} />;
  if (error.code === 'stream_deleted') {
    return (
      <EmptyState icon="trash" title="This stream is hard-deleted">
        Its name can't be used again. A scavenge removes its events from disk.
      </EmptyState>
    );
  }
  return <ErrorState error={error} what="The stream" onRetry={onRetry} />;
}

function Nothing({
  stream,
  isDeleted,
  isAbsent,
  isNewest,
  isFollowed,
  onNewest,
  onOldest,
}: {
  readonly stream: string;
  readonly isDeleted: boolean;
  readonly isAbsent: boolean;
  readonly isNewest: boolean;
  readonly isFollowed: boolean;
  readonly onNewest: () => void;
  readonly onOldest: () => void;
}) {
  if (isAbsent && isIndex(stream)) {
    return (
      <EmptyState
        icon="streams"
        title="The streams of indexes are read over gRPC"
        action={<Button href="/all">Search all events</Button>}
      >
        The page can't show them. All events can be searched by category and by event type.
      </EmptyState>
    );
  }
  if (!isNewest) {
    return (
      <EmptyState
        icon="streams"
        title="Nothing is left here"
        action={
          <div class="row">
            <Button onClick={onNewest}>Newest</Button>
            <Button onClick={onOldest}>Oldest</Button>
          </div>
        }
      >
        The events up to this number are gone or never existed.
      </EmptyState>
    );
  }
  return (
    <EmptyState
      icon={isDeleted ? 'trash' : 'streams'}
      title={
        isDeleted ? 'This stream is deleted' : isAbsent ? 'There is no such stream' : 'No event is left in this stream'
      }
    >
      {isDeleted
        ? 'Its events can no longer be read, and a scavenge removes them from disk. An append brings the stream back, at the next event number.'
        : isAbsent
          ? 'Nothing was ever written to it. The first event creates it.'
          : 'Its events are past the retention set in its metadata.'}
      {isFollowed && ' New events appear here.'}
    </EmptyState>
  );
}

function rangeText(count: number, newest: number, oldest: number): string {
  return count === 1
    ? `Event ${numberText(newest)}`
    : `${countText(count, 'event')}, ${numberText(newest)} to ${numberText(oldest)}`;
}

function numberIn(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
