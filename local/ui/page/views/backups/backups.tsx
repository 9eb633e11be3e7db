import { useEffect, useMemo, useState } from 'preact/hooks';
import { del } from '../../api/page-client.ts';
import { errorOf } from '../../api/problem-text.ts';
import { usePolled } from '../../api/polled.ts';
import type { Polled } from '../../api/polled.ts';
import { bytesText, countText, durationText, msOf, roughText } from '../../lib/format.ts';
import { now } from '../../lib/now.ts';
import { Bytes } from '../../parts/amount.tsx';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { EmptyState, Notice } from '../../parts/empty-state.tsx';
import { Loading } from '../../parts/loading.tsx';
import { Progress } from '../../parts/progress.tsx';
import { Stat } from '../../parts/stat.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { NO_CHECKS, restorableOf } from './backups-api.ts';
import type { BackupDocument as Backup } from '../../../../../handlers/documents/backup.ts';
import type {
  BackupsDocument,
  BackupStatusDocument,
  ChecksDocument,
} from '../../../../../handlers/documents/backup.ts';
import { ChecksCard } from './checks.tsx';
import { BackupDialog, DrillDialog, VerifyDialog } from './backup-dialogs.tsx';
import { BackupList } from './list.tsx';
import { Restore } from './restore.tsx';
import type { RestoreChoice } from './restore.tsx';
import { NotConfigured } from './not-configured.tsx';
import { Timeline } from './timeline.tsx';

const STATUS_EVERY_MS = 2_000;
const CHECKS_EVERY_MS = 2_000;
/** It reads the repository, which may be far away. */
const LIST_EVERY_MS = 60_000;
/** A drill that is older proves little of what is in the repository today. */
const PROVEN_MS_MAX = 30 * 86_400_000;

type Open = { readonly what: 'backup' | 'verify' } | { readonly what: 'drill'; readonly backup: Backup | null };

/** What would be left if the node were lost, and whether that can be trusted. */
export default function Backups() {
  const status = usePolled<BackupStatusDocument>('/admin/backup/status', STATUS_EVERY_MS);
  if (status.error.value?.status === 404) {
    return (
      <>
        <ViewHead title="Backups" />
        <Card>
          <EmptyState icon="backup" title="This node makes no backups">
            Its data is in memory, or in object storage, which keeps it safe itself.
          </EmptyState>
        </Card>
      </>
    );
  }
  return (
    <>
      {status.data.value === null && <ViewHead title="Backups" />}
      <Loading polled={status} what="Backups" lines={8}>
        {(known) =>
          known.repository === null ? (
            <>
              <ViewHead
                title="Backups"
                about="The node has no repository of its own. Of backups that were made by command it knows nothing."
              />
              <NotConfigured />
            </>
          ) : (
            <Configured status={known} polled={status} />
          )
        }
      </Loading>
    </>
  );
}

function Configured({
  status,
  polled,
}: {
  readonly status: BackupStatusDocument;
  readonly polled: Polled<BackupStatusDocument>;
}) {
  const list = usePolled<BackupsDocument>('/admin/backups', LIST_EVERY_MS);
  const checks = usePolled<ChecksDocument>('/admin/backup/check', CHECKS_EVERY_MS, { missing: NO_CHECKS });
  const [open, setOpen] = useState<Open | null>(null);
  const [wish, setWish] = useState<RestoreChoice>({ kind: 'newest' });
  const running = status.current ?? null;
  const known = checks.data.value?.checks ?? NO_CHECKS.checks;
  const check = known.find(({ state }) => state === 'running') ?? null;
  const listed = list.data.value;
  const backups = listed?.backups ?? null;
  const restorable = useMemo(() => (listed === null ? [] : restorableOf(listed)), [listed]);

  // When something has come to its end, what it has changed is asked for.
  useEffect(() => void list.refresh(), [running?.backupId, status.newest?.id]);
  useEffect(() => void polled.refresh(), [running?.backupId, check?.checkId]);

  const close = () => setOpen(null);
  // Then the button stands where the list would be, and there is nothing to check.
  const isEmpty = list.data.value?.backups.length === 0;
  return (
    <>
      <ViewHead
        title="Backups"
        about={
          <>
            To <code class="break">{status.repository}</code>
          </>
        }
        actions={
          !isEmpty && (
            <>
              <Button
                kind="primary"
                icon="backup"
                isDisabled={running !== null}
                {...(running !== null && { title: 'A backup is running' })}
                onClick={() => setOpen({ what: 'backup' })}
              >
                Back up now
              </Button>
              <Button
                icon="shield"
                isDisabled={check !== null}
                title="Restore a backup to test it"
                onClick={() => setOpen({ what: 'drill', backup: null })}
              >
                Drill
              </Button>
              <Button
                icon="check"
                isDisabled={check !== null}
                title="Check the repository against its checksums"
                onClick={() => setOpen({ what: 'verify' })}
              >
                Verify
              </Button>
            </>
          )
        }
      >
        {status.schedule !== null && (
          <Badge title="Minute, hour, day of month, month, day of week, in UTC">{`Schedule ${status.schedule}`}</Badge>
        )}
        {status.shipEverySeconds !== null && (
          <Badge>{`Ships log every ${durationText(status.shipEverySeconds * 1_000)}`}</Badge>
        )}
      </ViewHead>
      {status.last !== null && status.last.error !== null && running === null && (
        <Notice tone="bad" title="The last backup failed">
          {status.last.error}
        </Notice>
      )}
      {status.last?.result === 'Aborted' && running === null && <Notice title="The last backup was stopped" />}
      <Tiles status={status} />
      {running !== null && (
        <Card
          title="Backup in progress"
          actions={<Stop path="/admin/backup/current" what="The backup" onDone={() => void polled.refresh()} />}
        >
          <Progress
            label="Backup"
            phase={workText(running.phase, running)}
            done={running.bytesTotal > 0 ? running.bytesDone / running.bytesTotal : null}
            leftMs={running.remainingSeconds === null ? null : running.remainingSeconds * 1_000}
            detail={
              <>
                Started <Time at={running.startedAt} />
              </>
            }
          />
        </Card>
      )}
      {check !== null && (
        <Card
          title={check.kind === 'drill' ? 'Drill in progress' : 'Verification in progress'}
          actions={
            <Stop
              path="/admin/backup/check"
              what={check.kind === 'drill' ? 'The drill' : 'The verification'}
              onDone={() => void checks.refresh()}
            />
          }
        >
          <Progress
            label={check.kind === 'drill' ? 'Drill' : 'Verification'}
            phase={workText(check.phase ?? 'Starting', check)}
            done={check.bytesTotal > 0 ? check.bytesDone / check.bytesTotal : null}
            detail={
              <>
                Started <Time at={check.startedAt} />
              </>
            }
          />
        </Card>
      )}
      <Loading polled={list} what="The list of backups">
        {({ backups: all }) => (
          <>
            {all.length > 0 && (
              <Timeline backups={all} restorable={restorable} status={status} wish={wish} onWish={setWish} />
            )}
            {status.commands !== null && all.length > 0 && (
              <Restore
                commands={status.commands}
                backups={all}
                restorable={restorable}
                restorableMs={msOf(status.restorable?.at)}
                wish={wish}
                onWish={setWish}
              />
            )}
            <BackupList
              backups={all}
              wish={wish}
              onWish={setWish}
              onDrill={check === null ? (backup) => setOpen({ what: 'drill', backup }) : null}
              onStart={running === null ? () => setOpen({ what: 'backup' }) : null}
            />
          </>
        )}
      </Loading>
      <Loading polled={checks} what="Checks">
        {({ checks: all }) => (
          <ChecksCard checks={all.filter(({ state }) => state !== 'running')} commands={status.commands} />
        )}
      </Loading>
      <BackupDialog isOpen={open?.what === 'backup'} onClose={close} onDone={() => void polled.refresh()} />
      <VerifyDialog isOpen={open?.what === 'verify'} onClose={close} onDone={() => void checks.refresh()} />
      <DrillDialog
        isOpen={open?.what === 'drill'}
        backups={backups ?? []}
        backup={open?.what === 'drill' ? open.backup : null}
        onClose={close}
        onDone={() => void checks.refresh()}
      />
    </>
  );
}

/** What is done now, and how much of it, once it is known how much there is. */
function workText(
  phase: string,
  { bytesDone, bytesTotal }: { readonly bytesDone: number; readonly bytesTotal: number },
): string {
  return bytesTotal > 0 ? `${phase} – ${bytesText(bytesDone)} of ${bytesText(bytesTotal)}` : phase;
}

function Stop({ path, what, onDone }: { readonly path: string; readonly what: string; readonly onDone: () => void }) {
  const [isBusy, setBusy] = useState(false);
  return (
    <Button
      isSmall
      icon="stop"
      isBusy={isBusy}
      onClick={() => {
        setBusy(true);
        del(path)
          .then(
            () => toast(`${what} was stopped`),
            (thrown: unknown) => toast(errorOf(thrown).message, 'bad'),
          )
          .finally(() => {
            setBusy(false);
            onDone();
          });
      }}
    >
      Stop
    </Button>
  );
}

function Tiles({ status }: { readonly status: BackupStatusDocument }) {
  const { restorable, newest, unshippedBytes, shipLagSeconds, provenAt, verified } = status;
  const provenMs = msOf(provenAt);
  const isProvenOld = provenMs === null || now.value - provenMs > PROVEN_MS_MAX;
  return (
    <div class="tiles of-five">
      <Stat
        label="Restorable up to"
        value={
          restorable === null ? (
            'nothing yet'
          ) : unshippedBytes === 0 ? (
            'now'
          ) : (
            <Time at={restorable.at} show="relative" />
          )
        }
        note={
          restorable === null ? (
            'make the first backup'
          ) : unshippedBytes === 0 ? (
            'no writes since'
          ) : (
            <Time at={restorable.at} show="near" />
          )
        }
        {...(restorable === null && { tone: 'bad' as const })}
      />
      <Stat
        label="At risk"
        value={
          unshippedBytes === null ? (
            newest === null ? (
              'all'
            ) : (
              roughText(now.value - Date.parse(newest.createdAt))
            )
          ) : (
            <Bytes value={unshippedBytes} />
          )
        }
        note={
          unshippedBytes === null
            ? `${newest === null ? 'there is no backup' : 'written since the newest backup'}: the log is not shipped`
            : unshippedBytes === 0
              ? 'everything is in the repository'
              : `for ${durationText((shipLagSeconds ?? 0) * 1_000)}`
        }
        {...(unshippedBytes === null && { tone: newest === null ? ('bad' as const) : ('warn' as const) })}
      />
      <Stat
        label="Newest backup"
        value={newest === null ? 'none' : <Time at={newest.createdAt} show="relative" />}
        note={newest === null ? 'make one below' : <Time at={newest.createdAt} show="near" />}
        {...(newest === null && { tone: 'bad' as const })}
      />
      <Stat
        label="Last successful drill"
        value={provenAt === null ? 'never' : <Time at={provenAt} show="relative" />}
        note={provenAt === null ? 'no backup tested yet' : <Time at={provenAt} show="near" />}
        {...(isProvenOld && { tone: 'warn' as const })}
      />
      <Stat
        label="Last verification"
        value={verified === null ? 'none' : <Time at={verified.at} show="relative" />}
        note={
          verified === null ? (
            'since the node started'
          ) : (
            <>
              {verified.errors === 0 ? 'no errors found' : `${countText(verified.errors, 'error')} found`},{' '}
              <Time at={verified.at} show="near" />
            </>
          )
        }
        {...(verified !== null && verified.errors > 0 && { tone: 'bad' as const })}
      />
    </div>
  );
}
