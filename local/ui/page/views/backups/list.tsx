import { countText, numberText } from '../../lib/format.ts';
import { Bytes } from '../../parts/amount.tsx';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { Time } from '../../parts/time.tsx';
import { CAUSES, shortId } from './backups-api.ts';
import type { BackupDocument as Backup } from '../../../../../handlers/documents/backup.ts';
import type { RestoreChoice } from './restore.tsx';

/** All backups, newest first; one that is chosen is what the restore is of. */
export function BackupList({
  backups,
  wish,
  onWish,
  onDrill,
  onStart,
}: {
  readonly backups: readonly Backup[];
  readonly wish: RestoreChoice;
  readonly onWish: (wanted: RestoreChoice) => void;
  readonly onDrill: ((backup: Backup) => void) | null;
  readonly onStart: (() => void) | null;
}) {
  if (backups.length === 0) {
    return (
      <Card>
        <EmptyState
          icon="backup"
          title="No backups yet"
          action={
            onStart !== null && (
              <Button kind="primary" icon="backup" onClick={onStart}>
                Make the first backup
              </Button>
            )
          }
        >
          The repository is ready. The first backup stores everything; later ones only what is new.
        </EmptyState>
      </Card>
    );
  }
  const columns: readonly Column<Backup>[] = [
    {
      name: 'created',
      title: 'Created',
      width: '14rem',
      render: ({ createdAt }) => <Time at={createdAt} show="exact" />,
      sortBy: ({ createdAt }) => createdAt,
    },
    {
      name: 'cause',
      title: 'Cause',
      width: '9rem',
      isMinor: true,
      render: ({ cause }) => (
        <span title={CAUSES[cause].about}>
          <Badge>{CAUSES[cause].word}</Badge>
        </span>
      ),
      sortBy: ({ cause }) => cause,
    },
    {
      name: 'size',
      title: 'Restored size',
      width: '7rem',
      align: 'end',
      render: ({ sizeBytes }) => <Bytes value={sizeBytes} />,
      sortBy: ({ sizeBytes }) => sizeBytes,
    },
    {
      name: 'shipped',
      title: 'Log shipped after it',
      width: '12rem',
      isMinor: true,
      render: ({ logEnd, shippedEnd, shippedAt }) =>
        shippedEnd > logEnd ? (
          <>
            <Bytes value={shippedEnd - logEnd} />{' '}
            <span class="faint">
              to <Time at={shippedAt} />
            </span>
          </>
        ) : (
          <span class="faint">none</span>
        ),
    },
    {
      name: 'id',
      title: 'Id',
      width: '7rem',
      isMinor: true,
      render: ({ id, logEnd }) => (
        <code title={`${id}, up to position ${numberText(logEnd)} of the log`}>{shortId(id)}</code>
      ),
    },
    {
      name: 'drill',
      title: <span class="hidden-visually">Drill</span>,
      width: '5rem',
      align: 'end',
      render: (backup) => (
        <Button
          isSmall
          kind="quiet"
          isDisabled={onDrill === null}
          label={`Drill with backup ${shortId(backup.id)}`}
          onClick={() => onDrill?.(backup)}
        >
          Drill
        </Button>
      ),
    },
  ];
  return (
    <Card isFlush title="In the repository" note={countText(backups.length, 'backup')}>
      <Table
        label="Backups"
        columns={columns}
        rows={backups}
        keyOf={({ id }) => id}
        isChosen={({ id }) => wish.kind === 'backup' && wish.backup.id === id}
        onOpen={(backup) => onWish({ kind: 'backup', backup })}
      />
    </Card>
  );
}
