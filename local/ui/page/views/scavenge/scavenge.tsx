import { useEffect, useRef } from 'preact/hooks';
import { announce } from '../../lib/announce.ts';
import { setQuery } from '../../lib/router.ts';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { ViewHead } from '../../parts/card.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import type { ViewProps } from '../../views.ts';
import { DryRunTab } from './dry-run-tab.tsx';
import { Erasure } from './erasure.tsx';
import { Explain } from './explain.tsx';
import { History, refreshHistory } from './history.tsx';
import { useRun } from './scavenge-view.ts';
import { RunTab } from './run-tab.tsx';

const TABS = [
  { name: 'run', label: 'Run' },
  { name: 'dry-run', label: 'Dry run' },
  { name: 'history', label: 'History' },
  { name: 'explain', label: 'Explain' },
  { name: 'erasure', label: 'Prove erasure' },
] as const;

/** Scavenges of this node: what one would win, how one runs, what each has won, and what of a stream goes. */
export default function Scavenge({ query }: ViewProps) {
  const run = useRun();
  const wanted = query.get('tab');
  const tab = TABS.find(({ name }) => name === wanted)?.name ?? 'run';
  const { scavengeId, isDry } = run;
  const before = useRef<string | null>(null);
  useEffect(() => {
    const ended = before.current;
    before.current = scavengeId;
    if (scavengeId !== null && isDry === false) announce('A scavenge is running');
    // What it has left in the history is looked at once more, soon after its end.
    if (ended === null || scavengeId !== null) return;
    announce('The scavenge has finished');
    refreshHistory();
  }, [scavengeId]);
  return (
    <>
      <ViewHead
        title="Scavenge"
        about="Removes deleted, expired and truncated events from the files of this node."
        actions={
          <Button icon="chunks" href="/chunks">
            Chunk map
          </Button>
        }
      >
        {scavengeId !== null && <Badge tone="accent">{isDry === true ? 'Dry run' : 'Running'}</Badge>}
      </ViewHead>
      <Tabs
        label="Scavenge"
        tabs={TABS}
        current={tab}
        onChange={(name) => setQuery({ tab: name === 'run' ? null : name })}
      >
        <div class="stack">
          {tab === 'run' && <RunTab run={run} threshold={query.get('threshold')} />}
          {tab === 'dry-run' && <DryRunTab run={run} />}
          {tab === 'history' && <History runningId={scavengeId} />}
          {tab === 'explain' && <Explain stream={query.get('stream')} />}
          {tab === 'erasure' && <Erasure />}
        </div>
      </Tabs>
    </>
  );
}
