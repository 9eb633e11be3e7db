import { post } from '../../api/page-client.ts';
import { bytesText, nearText } from '../../lib/format.ts';
import { now } from '../../lib/now.ts';
import { Button } from '../../parts/button.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Form, Select, Toggle } from '../../parts/form.tsx';
import { toast } from '../../parts/toast.tsx';
import { shortId } from './backups-api.ts';
import type { BackupDocument as Backup } from '../../../../../handlers/documents/backup.ts';

interface Common {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function BackupDialog({ isOpen, onClose, onDone }: Common) {
  return (
    <Dialog title="Back up now" isOpen={isOpen} onClose={onClose} size="small">
      <Form
        onSubmit={async ({ pauseScavenge }) => {
          await post('/admin/backup', undefined, { query: { pauseScavenge: pauseScavenge === 'true' ? true : null } });
          onClose();
          onDone();
          toast('Backup started');
        }}
        buttons={(isBusy) => (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" kind="primary" isBusy={isBusy}>
              Back up
            </Button>
          </>
        )}
      >
        <p>
          Stores what the repository does not have yet. The node keeps running; the backup contains everything
          acknowledged before it started.
        </p>
        <Toggle
          name="pauseScavenge"
          label="Pause a running scavenge"
          about="A backup and a scavenge can't run at the same time. If set, a running scavenge stops at its next safe point and resumes after the backup; if not, the backup is refused while a scavenge runs."
        />
      </Form>
    </Dialog>
  );
}

const PARTS = [
  { value: '1', label: 'All of it' },
  { value: '0.5', label: 'Half of it' },
  { value: '0.1', label: 'A tenth' },
  { value: '0.01', label: 'A hundredth' },
] as const;

export function VerifyDialog({ isOpen, onClose, onDone }: Common) {
  return (
    <Dialog title="Verify the repository" isOpen={isOpen} onClose={onClose} size="small">
      <Form
        onSubmit={async ({ subset }) => {
          await post('/admin/backup/verify', undefined, { query: { subset } });
          onClose();
          onDone();
        }}
        buttons={(isBusy) => (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" kind="primary" isBusy={isBusy}>
              Verify
            </Button>
          </>
        )}
      >
        <p>
          Checks that everything the backups need is there and matches its checksums. Damaged objects are noted, so that
          the next backup stores them again.
        </p>
        <Select
          name="subset"
          label="How much is read"
          value="0.1"
          options={PARTS}
          about="A different part each day: at a tenth a day, everything is read in ten days. Reading a whole bucket can be slow and costly."
        />
      </Form>
    </Dialog>
  );
}

export function DrillDialog({
  isOpen,
  backups,
  backup,
  onClose,
  onDone,
}: Common & { readonly backups: readonly Backup[]; readonly backup: Backup | null }) {
  const newest = backups[0];
  return (
    <Dialog title="Drill" isOpen={isOpen} onClose={onClose} size="small">
      <Form
        onSubmit={async ({ backup: id }) => {
          await post('/admin/backup/drill', undefined, { query: { backup: id === newest?.id ? null : id } });
          onClose();
          onDone();
        }}
        buttons={(isBusy) => (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button type="submit" kind="primary" isBusy={isBusy} isDisabled={newest === undefined}>
              Start the drill
            </Button>
          </>
        )}
      >
        <p>
          Restores a backup to a temporary folder on this machine, opens it, checks every record and index entry, and
          removes it. The node is not changed. A backup that passes is marked as tested.
        </p>
        {newest === undefined ? (
          <p>There is no backup yet. Make one first.</p>
        ) : (
          <Select
            name="backup"
            label="Which backup"
            value={backup?.id ?? newest.id}
            options={backups.map((each) => ({
              value: each.id,
              label: `${nearText(Date.parse(each.createdAt), now.value)} – ${shortId(each.id)}`,
            }))}
            about={`The newest stands first. The drill needs about ${bytesText((backup ?? newest).sizeBytes * 1.2)} of free space while it runs.`}
          />
        )}
      </Form>
    </Dialog>
  );
}
