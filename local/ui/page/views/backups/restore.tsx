import { useState } from 'preact/hooks';
import { absoluteText } from '../../lib/format.ts';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { Command } from '../../parts/command.tsx';
import { shortId, takenMs, timeWord } from './backups-api.ts';
import type { Restorable } from './backups-api.ts';
import type { BackupCommands } from '../../../../../core/backup/api.ts';
import type { BackupDocument as Backup } from '../../../../../handlers/documents/backup.ts';

/** What the user wants back. */
export type RestoreChoice =
  | { readonly kind: 'newest' }
  | { readonly kind: 'backup'; readonly backup: Backup }
  | { readonly kind: 'moment'; readonly ms: number };

/** The exact command, for the state that was chosen. */
export function Restore({
  commands,
  backups,
  restorable,
  restorableMs,
  wish,
  onWish,
}: {
  readonly commands: BackupCommands;
  readonly backups: readonly Backup[];
  readonly restorable: readonly Restorable[];
  readonly restorableMs: number | null;
  readonly wish: RestoreChoice;
  readonly onWish: (wanted: RestoreChoice) => void;
}) {
  const [isBefore, setBefore] = useState(false);
  const newest = backups[0]!;
  const lastMs = restorable.at(-1)?.toMs ?? null;
  return (
    <Card
      title="Restore"
      actions={
        <div class="segments" role="group" aria-label="Restore point">
          <Button isSmall kind="quiet" isPressed={wish.kind === 'newest'} onClick={() => onWish({ kind: 'newest' })}>
            Latest
          </Button>
          <Button
            isSmall
            kind="quiet"
            isPressed={wish.kind === 'moment'}
            isDisabled={lastMs === null}
            onClick={() => wish.kind !== 'moment' && onWish({ kind: 'moment', ms: lastMs! })}
          >
            Point in time
          </Button>
          <Button
            isSmall
            kind="quiet"
            isPressed={wish.kind === 'backup'}
            onClick={() => onWish({ kind: 'backup', backup: newest })}
          >
            A backup
          </Button>
        </div>
      }
    >
      <div class="stack tight">
        {wish.kind === 'newest' && (
          <p class="muted">
            The newest backup and the log shipped after it
            {restorableMs !== null && (
              <>
                : the state at <strong>{absoluteText(restorableMs)}</strong>
              </>
            )}
            .
          </p>
        )}
        {wish.kind === 'moment' && (
          <div class="row wrap restore-moment">
            <div class="field">
              <label for="restore-moment">Point in time, in your time zone</label>
              <input
                id="restore-moment"
                type="datetime-local"
                step={1}
                value={localText(wish.ms)}
                max={localText(lastMs ?? wish.ms)}
                onChange={(event) => {
                  const ms = new Date(event.currentTarget.value).getTime();
                  if (Number.isFinite(ms)) onWish({ kind: 'moment', ms: takenMs(restorable, ms, wish.ms) });
                }}
              />
            </div>
            <label class="row small">
              <input type="checkbox" checked={isBefore} onChange={(event) => setBefore(event.currentTarget.checked)} />
              Or the nearest point before it
            </label>
          </div>
        )}
        {wish.kind === 'moment' && restorable.length > 1 && (
          <p class="muted small">
            Where the log was scavenged and no earlier backup has it, there is a gap, which this field skips.
          </p>
        )}
        {wish.kind === 'backup' && (
          <p class="muted">
            Backup <code>{shortId(wish.backup.id)}</code> of{' '}
            <strong class="nowrap">{absoluteText(Date.parse(wish.backup.createdAt))}</strong>. Choose another in the
            list.
          </p>
        )}
        <Command text={commandOf(commands, wish, isBefore)} />
        <ol class="restore-steps small muted">
          <li>
            Run it on the machine of the new node, as the user that runs the node, with access to the repository. The
            directory must be empty and not in use.
          </li>
          <li>It verifies every byte and opens the result before it reports success.</li>
          <li>Start a node on that directory. It gets a new node id. If the old node still runs, stop it first.</li>
        </ol>
      </div>
    </Card>
  );
}

export function commandOf({ restore }: BackupCommands, wanted: RestoreChoice, isBefore: boolean): string {
  if (wanted.kind === 'newest') return restore;
  return wanted.kind === 'backup'
    ? `${restore} --backup ${wanted.backup.id}`
    : `${restore} --to-time ${timeWord(wanted.ms)}${isBefore ? ' --at-or-before' : ''}`;
}

/** As fields for times take it: local, without a zone. */
function localText(ms: number): string {
  const away = new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(ms - away).toISOString().slice(0, 19);
}
