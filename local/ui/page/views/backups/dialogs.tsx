import { post } from '../../api/client.ts';
import { absoluteText, bytesText } from '../../lib/format.ts';
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
          toast('The backup has begun');
        }}
        buttons={(isBusy) => <><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" isBusy={isBusy}>Back up</Button></>}
      >
        <p class="muted">Stores what the repository lacks. The node goes on working meanwhile; everything that was acknowledged before the beginning is in it.</p>
        <Toggle name="pauseScavenge" label="Pause a scavenge that runs" about="A backup and a scavenge can't run at the same time. With this a scavenge is stopped at its next safe place, and goes on where it was when the backup is made; without it, the backup is refused while one runs." />
      </Form>
    </Dialog>
  );
}

const PARTS = [{ value: '1', label: 'All of it' }, { value: '0.5', label: 'Half of it' }, { value: '0.1', label: 'A tenth' }, { value: '0.01', label: 'A hundredth' }] as const;

export function VerifyDialog({ isOpen, onClose, onDone }: Common) {
  return (
    <Dialog title="Verify the repository" isOpen={isOpen} onClose={onClose} size="small">
      <Form
        onSubmit={async ({ subset }) => {
          await post('/admin/backup/verify', undefined, { query: { subset } });
          onClose();
          onDone();
        }}
        buttons={(isBusy) => <><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" isBusy={isBusy}>Verify</Button></>}
      >
        <p class="muted">Looks for everything that the backups need, and reads it against its checksums. What is damaged is noted, so that the next backup stores it anew.</p>
        <Select name="subset" label="How much is read" value="0.1" options={PARTS} about="Each day another part: a tenth every day has read everything after ten. Reading all of a bucket may cost time and money." />
      </Form>
    </Dialog>
  );
}

export function DrillDialog({ isOpen, backups, backup, onClose, onDone }: Common & { readonly backups: readonly Backup[]; readonly backup: Backup | null }) {
  const newest = backups[0];
  return (
    <Dialog title="Drill" isOpen={isOpen} onClose={onClose} size="small">
      <Form
        onSubmit={async ({ backup: id }) => {
          await post('/admin/backup/drill', undefined, { query: { backup: id === newest?.id ? null : id } });
          onClose();
          onDone();
        }}
        buttons={(isBusy) => <><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" isBusy={isBusy} isDisabled={newest === undefined}>Begin</Button></>}
      >
        <p class="muted">Restores a backup to a folder for temporary files of this machine, opens it there, checks every record and index entry, and removes it. Nothing of the node changes. One that passes is noted as proven.</p>
        {newest === undefined ? <p>There is no backup yet: make one first.</p> : <Select name="backup" label="Which backup" value={backup?.id ?? newest.id} options={backups.map((each, i) => ({ value: each.id, label: `${i === 0 ? 'Newest: ' : ''}${absoluteText(Date.parse(each.createdAt))} – ${bytesText(each.sizeBytes)} – ${shortId(each.id)}` }))} about={`It takes room for about ${bytesText((backup ?? newest).sizeBytes * 1.2)} while it runs.`} />}
      </Form>
    </Dialog>
  );
}
