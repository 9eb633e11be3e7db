import { useEffect, useState } from 'preact/hooks';
import { get } from '../../api/page-client.ts';
import { errorOf } from '../../api/problem-text.ts';
import type { ApiError } from '../../api/problem-text.ts';
import { bytesText, countText, durationText, numberText } from '../../lib/format.ts';
import { Badge } from '../../parts/badge.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { ErrorState } from '../../parts/empty-state.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { linkOf, membersOf, numberOf, spanMsOf, textOf } from './scavenge-feed.ts';
import type { Feed, FeedEntry } from './scavenge-feed.ts';
import type { PastRun } from './past-runs.ts';
import { Reclaimed } from './reclaimed.tsx';
import { Result } from './results.tsx';

const PAGE = 500;
/** Events of a run that are read: a user looks through no more than this. */
const EVENTS_MAX = 20_000;

interface Step {
  readonly number: number;
  readonly what: string;
  readonly about: string;
  readonly won: number | null;
  readonly elapsedMs: number | null;
  readonly error: string | null;
}

/** What an event of a run tells, in words. */
function stepOf(entry: FeedEntry): Step | null {
  const members = membersOf(entry);
  const chunks = `${numberText(numberOf(members['chunkStartNumber']))}–${numberText(numberOf(members['chunkEndNumber']))}`;
  const common = {
    number: entry.eventNumber,
    won: numberOf(members['spaceSaved']),
    elapsedMs: spanMsOf(members['timeTaken']),
    error: textOf(members['errorMessage']),
  };
  if (entry.eventType === '$scavengeChunksCompleted')
    return {
      ...common,
      what: 'Chunk rewritten',
      about:
        members['chunkStartNumber'] === members['chunkEndNumber']
          ? numberText(numberOf(members['chunkStartNumber']))
          : chunks,
    };
  if (entry.eventType === '$scavengeMergeCompleted') return { ...common, what: 'Chunks merged', about: chunks };
  if (entry.eventType === '$scavengeIndexCompleted')
    return {
      ...common,
      what: `${typeof members['attributeIndex'] === 'string' ? 'Attribute index' : 'Index'} table`,
      about: `${countText(numberOf(members['entriesDeleted']), 'entry', 'entries')} removed, ${numberText(numberOf(members['entriesKept']))} kept`,
    };
  return null;
}

const COLUMNS: readonly Column<Step>[] = [
  { name: 'what', title: 'What', width: '12rem', sortBy: ({ what }) => what, render: ({ what }) => what },
  {
    name: 'about',
    title: 'Which',
    render: ({ about, error }) =>
      error === null ? (
        about
      ) : (
        <span class="row">
          <Badge tone="bad">failed</Badge>
          <span class="truncate" title={error}>
            {about}: {error}
          </span>
        </span>
      ),
  },
  {
    name: 'won',
    title: 'Reclaimed',
    width: '8rem',
    align: 'end',
    sortBy: ({ won }) => won,
    render: ({ won }) => bytesText(won),
  },
  {
    name: 'took',
    title: 'Duration',
    width: '7rem',
    align: 'end',
    isMinor: true,
    sortBy: ({ elapsedMs }) => elapsedMs,
    render: ({ elapsedMs }) => durationText(elapsedMs),
  },
];

/** One run: its sums, and each file that it has written. */
export function RunDetail({ run, runningId }: { readonly run: PastRun; readonly runningId: string | null }) {
  const [steps, setSteps] = useState<readonly Step[] | null>(null);
  const [failure, setFailure] = useState<ApiError | null>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    setFailure(null);
    const ending = new AbortController();
    readSteps(run.scavengeId, ending.signal).then(setSteps, (thrown: unknown) => {
      if (!ending.signal.aborted) setFailure(errorOf(thrown));
    });
    return () => ending.abort();
  }, [run.scavengeId, attempt]);
  const sum = (what: string) => steps?.filter((step) => step.what === what) ?? [];
  const won = (list: readonly Step[]) => list.reduce((total, step) => total + (step.won ?? 0), 0);
  const kinds = [
    { list: sum('Chunk rewritten'), one: 'chunk rewritten', many: 'chunks rewritten' },
    { list: sum('Chunks merged'), one: 'merge' },
    { list: sum('Index table'), one: 'index table' },
    { list: sum('Attribute index table'), one: 'attribute index table' },
  ].filter(({ list }) => list.length > 0);
  return (
    <>
      <Definitions
        isWide
        items={[
          ['Result', <Result run={run} runningId={runningId} />],
          run.error === null ? null : ['Error', <span class="break">{run.error}</span>],
          ['Reclaimed in total', <Reclaimed value={run.spaceSaved} />],
          ['Started', <Time at={run.startedAt} show="exact" />],
          ['Duration', durationText(run.elapsedMs)],
          ['Node', run.node ?? '–'],
          ['Run', <code class="break">{run.scavengeId}</code>],
          kinds.length === 0
            ? null
            : [
                'Of this',
                kinds.map(({ list, one, many }) => (
                  <div key={one}>
                    {countText(list.length, one, many)}: {bytesText(won(list))}
                  </div>
                )),
              ],
        ]}
      />
      {failure !== null ? (
        <ErrorState error={failure} what="The run" onRetry={() => setAttempt(attempt + 1)} />
      ) : steps === null ? (
        <Skeleton lines={5} />
      ) : (
        steps.length > 0 && (
          <Table
            label="What the run did"
            columns={COLUMNS}
            rows={steps}
            keyOf={({ number }) => number}
            height="22rem"
          />
        )
      )}
    </>
  );
}

async function readSteps(scavengeId: string, signal: AbortSignal): Promise<readonly Step[]> {
  const steps: Step[] = [];
  let path: string | null = `/streams/${encodeURIComponent(`$scavenges-${scavengeId}`)}/0/forward/${PAGE}?embed=body`;
  while (path !== null && steps.length < EVENTS_MAX) {
    const feed: Feed = await get<Feed>(path, { signal });
    // Pages stand newest first, whichever way they are read.
    for (const entry of feed.entries.toReversed()) {
      const step = stepOf(entry);
      if (step !== null) steps.push(step);
    }
    path = feed.entries.length < PAGE ? null : linkOf(feed, 'previous');
  }
  return steps;
}
