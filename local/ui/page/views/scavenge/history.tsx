import { useMemo, useState } from 'preact/hooks';
import { get } from '../../api/page-client.ts';
import { poller, usePolled } from '../../api/polled.ts';
import type { Polled, PollOptions } from '../../api/polled.ts';
import { errorOf } from '../../api/problem-text.ts';
import { bytesText, durationText, msOf } from '../../lib/format.ts';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { EmptyState, ErrorState } from '../../parts/empty-state.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { linkOf } from './scavenge-feed.ts';
import type { Feed } from './scavenge-feed.ts';
import { runsOf } from './past-runs.ts';
import type { PastRun } from './past-runs.ts';
import { RunDetail } from './run-detail.tsx';
import { Result } from './results.tsx';

const PAGE = 100;
const HISTORY_PATH = `/streams/%24scavenges/head/backward/${PAGE}?embed=body`;
const EVERY_MS = 10_000;
type Runs = Pick<Feed, 'entries' | 'links'>;
/** Before the first run its stream is absent. */
const OPTIONS: PollOptions<Runs> = { missing: { entries: [], links: [] } };

/** The newest of the runs that are remembered. */
export function useHistory(isWanted = true): Polled<Runs> {
  return usePolled(isWanted ? HISTORY_PATH : null, EVERY_MS, OPTIONS);
}

export function refreshHistory(): void {
  void poller(HISTORY_PATH, OPTIONS).refresh();
}

const columnsOf = (runningId: string | null): readonly Column<PastRun>[] => [
  {
    name: 'started',
    title: 'Started',
    sortBy: ({ startedAt }) => msOf(startedAt),
    render: ({ startedAt }) => <Time at={startedAt} show="exact" />,
  },
  {
    name: 'result',
    title: 'Result',
    sortBy: ({ result }) => result,
    render: (run) => <Result run={run} runningId={runningId} />,
  },
  {
    name: 'won',
    title: <span title="Bytes of the files before, less those after">Reclaimed on disk</span>,
    align: 'end',
    sortBy: ({ spaceSaved }) => spaceSaved,
    render: ({ spaceSaved }) => <strong>{bytesText(spaceSaved)}</strong>,
  },
  {
    name: 'took',
    title: 'Duration',
    align: 'end',
    isMinor: true,
    sortBy: ({ elapsedMs }) => elapsedMs,
    render: ({ elapsedMs }) => durationText(elapsedMs),
  },
  { name: 'node', title: 'Node', isMinor: true, sortBy: ({ node }) => node, render: ({ node }) => node ?? '–' },
  {
    name: 'run',
    title: 'Run',
    isMinor: true,
    render: ({ scavengeId }) => <code class="faint">{scavengeId.slice(0, 8)}</code>,
  },
];

/** All runs that are remembered, of all members, newest first; one of them in detail. */
export function History({ runningId }: { readonly runningId: string | null }) {
  const polled = useHistory();
  const [older, setOlder] = useState<readonly Feed[]>([]);
  const [isBusy, setBusy] = useState(false);
  const [open, setOpen] = useState<PastRun | null>(null);
  const data = polled.data.value;
  const error = polled.error.value;
  const runs = useMemo(
    () => runsOf([...(data?.entries ?? []), ...older.flatMap(({ entries }) => entries)]),
    [data, older],
  );
  const last = older.at(-1) ?? data;
  const next = last === null ? null : linkOf(last, 'next');
  const more = async () => {
    setBusy(true);
    try {
      const feed = await get<Feed>(next!);
      setOlder([...older, feed]);
    } catch (thrown) {
      toast(errorOf(thrown).message, 'bad');
    } finally {
      setBusy(false);
    }
  };
  if (data === null)
    return (
      <Card>
        {error === null ? (
          <Skeleton />
        ) : (
          <ErrorState error={error} what="The history" onRetry={() => void polled.refresh()} />
        )}
      </Card>
    );
  return (
    <Card isFlush>
      <Table
        label="Scavenges"
        columns={columnsOf(runningId)}
        rows={runs}
        keyOf={({ scavengeId }) => scavengeId}
        onOpen={setOpen}
        empty={
          <EmptyState
            icon="scavenge"
            title="No scavenges yet"
            action={<Button href="/scavenge?tab=dry-run">See what one would reclaim</Button>}
          >
            Each run records what it did in the $scavenges streams, which this list is read from.
          </EmptyState>
        }
      />
      {next !== null && (
        <div class="card-foot">
          <Button isSmall isBusy={isBusy} onClick={() => void more()}>
            Older runs
          </Button>
        </div>
      )}
      <Dialog title="What the run did" isOpen={open !== null} onClose={() => setOpen(null)} size="large">
        {open !== null && <RunDetail run={open} runningId={runningId} />}
      </Dialog>
    </Card>
  );
}
