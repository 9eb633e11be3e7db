import { useEffect, useMemo } from 'preact/hooks';
import { usePolled } from '../../api/polled.ts';
import { absoluteText, durationText, msOf } from '../../lib/format.ts';
import { Badge } from '../../parts/badge.tsx';
import { Card } from '../../parts/card.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { EmptyState, Notice } from '../../parts/empty-state.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Loading } from '../../parts/loading.tsx';
import { Button } from '../../parts/button.tsx';
import { Name } from '../../parts/name.tsx';
import { Time } from '../../parts/time.tsx';
import { olderText } from './resumed-point-note.ts';
import type { LastDocument, ResumedPointDocument } from '../../../../../handlers/documents/scavenging.ts';
import { useHistory } from './history.tsx';
import { runsOf } from './past-runs.ts';
import { Reclaimed } from './reclaimed.tsx';
import { RESULT_TONES } from './results.tsx';
import { LAST_PATH } from './scavenge-view.ts';
import type { Run } from './scavenge-view.ts';
import { PHASES, RunProgress, StopButton } from './run-bar.tsx';
import { StartForm } from './start-form.tsx';

const LAST_EVERY_MS = 10_000;
/** Of a node on which none has run since its start. */
const NONE_YET = 'Unknown';

/** The run that goes on, or the last one, and how to start another. */
export function RunTab({ run, threshold }: { readonly run: Run; readonly threshold: string | null }) {
  const { scavengeId, isDry, current } = run;
  const known = current.data.value;
  const waiting = known?.waiting;
  return (
    <>
      {scavengeId === null && waiting !== undefined && <Waiting point={waiting} />}
      <div class="columns">
        {scavengeId !== null ? (
          <Running run={run} />
        ) : (
          <div class="stack">
            <LastRun run={run} />
            <Card title="What a scavenge does">
              <Phases phase={null} />
            </Card>
          </div>
        )}
        <Card title="Start a scavenge" note={scavengeId === null ? undefined : 'one at a time'}>
          {scavengeId === null ? (
            <StartForm run={run} threshold={threshold} hasWaiting={known === null ? null : waiting !== undefined} />
          ) : (
            <EmptyState icon="scavenge" title={isDry === true ? 'A dry run is under way' : 'A scavenge is under way'}>
              Another one can start when it has finished or been stopped.
            </EmptyState>
          )}
        </Card>
      </div>
    </>
  );
}

function Running({ run }: { readonly run: Run }) {
  const { progress, isDry, scavengeId } = run;
  return (
    <Card title={isDry === true ? 'Dry run' : 'Running now'} actions={<StopButton run={run} isSmall />}>
      <div class="stack">
        <RunProgress run={run} />
        {progress?.olderPoint !== undefined && <p class="small muted">{olderText(progress.olderPoint)}</p>}
        {isDry !== true && <Phases phase={progress?.phase ?? null} />}
        <p class="small faint break">
          Run <code>{scavengeId}</code>. It may have been started from this page, over HTTP, by the command line or by a
          schedule.
        </p>
      </div>
    </Card>
  );
}

/** The phases in their order, and which of them goes on. */
function Phases({ phase }: { readonly phase: string | null }) {
  const at = PHASES.findIndex(({ name }) => name === phase);
  return (
    <ol class="phases" aria-label="Phases">
      {PHASES.map(({ name, about }, i) => {
        const state = at < 0 || i > at ? 'to-come' : i < at ? 'done' : 'now';
        return (
          <li key={name} class={state} aria-current={state === 'now' ? 'step' : undefined}>
            <span class="phase-mark">{state === 'done' ? <Icon name="check" size={14} /> : i + 1}</span>
            <div>
              <strong>{name}</strong>
              {state === 'done' && <span class="hidden-visually"> (done)</span>}
              <p class="small muted">{about}</p>
            </div>
          </li>
        );
      })}
    </ol>
  );
}

function LastRun({ run }: { readonly run: Run }) {
  const last = usePolled<LastDocument>(LAST_PATH, LAST_EVERY_MS);
  // When, how long and how much stands in the history, which is absent before the first run.
  const isKnown = last.data.value !== null && last.data.value.scavengeResult !== NONE_YET;
  const history = useHistory(isKnown);
  const runs = useMemo(() => runsOf(history.data.value?.entries ?? []), [history.data.value]);
  const answered = run.current.atMs.value !== null;
  // It may have ended a moment ago.
  useEffect(() => {
    if (!answered) return;
    void last.refresh();
    if (isKnown) void history.refresh();
  }, [answered]);
  return (
    <Card title="Last scavenge">
      <Loading polled={last} what="The last scavenge">
        {(data) => {
          const { scavengeResult: result } = data;
          const past = runs.find(({ scavengeId }) => scavengeId === data.scavengeId);
          return result === NONE_YET ? (
            <EmptyState
              icon="scavenge"
              title="No scavenge since the node started"
              action={<Button href="/scavenge?tab=dry-run">Start a dry run</Button>}
            >
              Earlier runs, if any, are in the history.
            </EmptyState>
          ) : (
            <div class="stack">
              <Definitions
                items={[
                  ['Result', <Badge tone={RESULT_TONES[result] ?? 'plain'}>{result}</Badge>],
                  past === undefined ? null : ['Ended', <Time at={past.endedAt} show="exact" />],
                  past === undefined ? null : ['Took', durationText(past.elapsedMs)],
                  past === undefined ? null : ['Reclaimed', <Reclaimed value={past.spaceSaved} />],
                  past?.node == null ? null : ['Node', <Name text={past.node} />],
                  ['Run', <code class="break">{data.scavengeId}</code>],
                  data.error === undefined ? null : ['Error', <span class="break">{data.error}</span>],
                ]}
              />
              <div>
                <Button isSmall href="/scavenge?tab=history">
                  What it did
                </Button>
              </div>
            </div>
          );
        }}
      </Loading>
    </Card>
  );
}

function Waiting({ point }: { readonly point: ResumedPointDocument }) {
  const ms = msOf(point.effectiveNow);
  return (
    <Notice tone="info" title={point.why === 'unfinished' ? 'A scavenge was not finished' : 'A scavenge point waits'}>
      The next start {point.why === 'unfinished' ? 'resumes where it stopped' : 'takes the point of another member'}, up
      to the log as it was {ms === null ? 'then' : `at ${absoluteText(ms)}`}, with the threshold {point.threshold}. What
      has become removable since is left to the run after it; “Start fresh” scavenges up to now instead.
    </Notice>
  );
}
