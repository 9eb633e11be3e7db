import { useState } from 'preact/hooks';
import { mayUse } from '../../api/page-session.ts';
import { post } from '../../api/page-client.ts';
import { usePolled } from '../../api/polled.ts';
import type { Polled } from '../../api/polled.ts';
import { errorOf } from '../../api/problem-text.ts';
import { Badge } from '../../parts/badge.tsx';
import type { Tone } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { EmptyState, ErrorState, Notice } from '../../parts/empty-state.tsx';
import { Skeleton } from '../../parts/loading.tsx';
import { toast } from '../../parts/toast.tsx';
import { Cycle } from './cycle.tsx';
import type { EnabledDocument, ScheduleDocument } from '../../../../../handlers/documents/scavenging.ts';
import { ScheduleForm } from './schedule-form.tsx';
import { Times } from './times.tsx';
import { Off } from './off.tsx';

const STATES: Readonly<
  Record<ScheduleDocument['state'], { readonly label: string; readonly tone: Tone; readonly about: string }>
> = {
  NotConfigured: {
    label: 'No schedule',
    tone: 'plain',
    about: 'There is no schedule yet, so no scavenge starts automatically.',
  },
  Waiting: { label: 'Waiting', tone: 'ok', about: 'Waiting for the next scheduled time.' },
  InProgress: {
    label: 'In progress',
    tone: 'accent',
    about: 'A cycle is running: members are scavenged one after the other.',
  },
  Pausing: {
    label: 'Pausing',
    tone: 'warn',
    about: 'The scavenge of a member is being stopped; auto-scavenge is paused after that.',
  },
  Paused: {
    label: 'Paused',
    tone: 'warn',
    about: 'Nothing starts until it is resumed. A cycle then continues with the remaining members.',
  },
};

const ENABLED_EVERY_MS = 30_000;
const STATUS_EVERY_MS = 2_000;

/** Scavenges that begin by themselves: when, and how the cycle over the members goes. */
export default function AutoScavenge() {
  const enabled = usePolled<EnabledDocument>('/auto-scavenge/enabled', ENABLED_EVERY_MS);
  const isOn = enabled.data.value?.enabled === true;
  const status = usePolled<ScheduleDocument>(isOn ? '/auto-scavenge/status' : null, STATUS_EVERY_MS);
  const { value: data } = enabled.data;
  const { value: error } = enabled.error;
  if (data === null && error?.status === 404)
    return (
      <>
        <ViewHead title="Auto-scavenge" />
        <Card>
          <EmptyState icon="clock" title="Not available on this node">
            Nodes on object storage and functions have no auto-scavenge: start scavenges from your own scheduler.
          </EmptyState>
        </Card>
      </>
    );
  if (data === null)
    return (
      <>
        <ViewHead title="Auto-scavenge" />
        {error === null ? (
          <Skeleton lines={6} />
        ) : (
          <ErrorState error={error} what="Auto-scavenge" onRetry={() => void enabled.refresh()} />
        )}
      </>
    );
  if (!data.enabled)
    return (
      <>
        <ViewHead title="Auto-scavenge">
          <Badge>Off</Badge>
        </ViewHead>
        <Off reason={data.reason ?? null} />
      </>
    );
  return <On status={status} />;
}

function On({ status }: { readonly status: Polled<ScheduleDocument> }) {
  const [isEditing, setEditing] = useState(false);
  const [busy, setBusy] = useState<string | null>(null);
  const data = status.data.value;
  const error = status.error.value;
  if (data === null)
    return (
      <>
        <ViewHead title="Auto-scavenge" />
        {error === null ? (
          <Skeleton lines={6} />
        ) : (
          <ErrorState error={error} what="Auto-scavenge" onRetry={() => void status.refresh()} />
        )}
      </>
    );
  const { state, schedule, cycle, lastCycle } = data;
  const { label, tone, about } = STATES[state];
  const isOperator = mayUse('operators');
  const order = async (name: 'pause' | 'resume', done: string) => {
    setBusy(name);
    try {
      await post(`/auto-scavenge/${name}`);
      toast(done, 'ok');
    } catch (thrown) {
      const failure = errorOf(thrown);
      toast(`${failure.message}${failure.hint === null ? '' : ` ${failure.hint}`}`, 'bad');
    } finally {
      await status.refresh();
      setBusy(null);
    }
  };
  const isPaused = state === 'Paused' || state === 'Pausing';
  return (
    <>
      <ViewHead
        title="Auto-scavenge"
        about={about}
        actions={
          isOperator &&
          schedule !== null &&
          (isPaused ? (
            <Button
              kind="primary"
              icon="play"
              isBusy={busy === 'resume'}
              isDisabled={state === 'Pausing'}
              title={state === 'Pausing' ? 'Still pausing' : undefined}
              onClick={() => void order('resume', 'Auto-scavenge resumed')}
            >
              Resume
            </Button>
          ) : (
            <Button
              icon="pause"
              isBusy={busy === 'pause'}
              onClick={() => void order('pause', 'Auto-scavenge is paused')}
            >
              Pause
            </Button>
          ))
        }
      >
        <Badge tone={tone}>{label}</Badge>
      </ViewHead>
      {error !== null && !error.isAway && (
        <Notice tone="warn" title="This may be out of date">
          {error.message}
        </Notice>
      )}
      <div class="columns">
        <Card
          title="Schedule"
          actions={
            isOperator &&
            schedule !== null && (
              <Button isSmall icon="edit" onClick={() => setEditing(true)}>
                Edit
              </Button>
            )
          }
        >
          {schedule === null ? (
            isOperator ? (
              <ScheduleForm schedule={null} onSaved={() => status.refresh()} />
            ) : (
              <EmptyState icon="clock" title="No schedule yet">
                Members of $ops and $admins can set one.
              </EmptyState>
            )
          ) : (
            <div class="stack">
              <p>
                <code class="schedule">{schedule}</code>
              </p>
              {isPaused && <Notice tone="warn">Paused: no cycle starts at these times.</Notice>}
              <Times path={`/auto-scavenge/times?count=5&schedule=${encodeURIComponent(schedule)}`} />
            </div>
          )}
        </Card>
        <div class="stack">
          {cycle !== null && (
            <Card title={state === 'Paused' ? 'Paused cycle' : 'Current cycle'}>
              <Cycle
                at={cycle.startedAt}
                what="started"
                id={cycle.clusterScavengeId}
                nodes={cycle.nodes}
                isLive={state === 'InProgress'}
              />
            </Card>
          )}
          <Card title="Last cycle">
            {lastCycle === null ? (
              <EmptyState icon="scavenge" title="No cycle has completed yet">
                {schedule === null
                  ? 'The first one starts automatically once there is a schedule.'
                  : 'Once one has, its result on each member is shown here.'}
              </EmptyState>
            ) : (
              <Cycle
                at={lastCycle.completedAt}
                what="ended"
                id={lastCycle.clusterScavengeId}
                nodes={lastCycle.nodes}
                isLive={false}
              />
            )}
          </Card>
        </div>
      </div>
      <Dialog title="Edit the schedule" isOpen={isEditing} onClose={() => setEditing(false)}>
        <ScheduleForm
          schedule={schedule}
          onCancel={() => setEditing(false)}
          onSaved={async () => {
            setEditing(false);
            await status.refresh();
          }}
        />
      </Dialog>
    </>
  );
}
