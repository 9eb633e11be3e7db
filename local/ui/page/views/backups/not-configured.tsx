import { useState } from 'preact/hooks';
import { Card } from '../../parts/card.tsx';
import { Command } from '../../parts/command.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Tabs } from '../../parts/tabs.tsx';

const WAYS = [
  {
    name: 'words',
    label: 'Command line',
    text: '--backup-repository s3://backups \\\n  --backup-schedule "30 2 * * *" \\\n  --backup-ship-every-sec 5',
  },
  {
    name: 'file',
    label: 'File',
    text: 'Backup:\n  Repository: s3://backups\n  Schedule: "30 2 * * *"\n  ShipEverySec: 5',
  },
  {
    name: 'environment',
    label: 'Environment',
    text: 'SERVER_BACKUP__REPOSITORY=s3://backups\nSERVER_BACKUP__SCHEDULE="30 2 * * *"\nSERVER_BACKUP__SHIP_EVERY_SEC=5',
  },
] as const;

/** What to set, so that the node keeps backups of itself. */
export function NotConfigured() {
  const [way, setWay] = useState<string>('words');
  const shown = WAYS.find(({ name }) => name === way)!;
  return (
    <Card>
      <EmptyState icon="backup" title="Without a backup, lost data stays lost">
        Set a repository – a bucket, or a directory on another disk – and restart the node. It then makes backups on a
        schedule and ships new log every few seconds in between, so that you can restore to any point in time.
      </EmptyState>
      <div class="options-to-set">
        <Tabs label="Where to set the options" tabs={WAYS} current={way} onChange={setWay}>
          <Command text={shown.text} label="Copy the options" />
        </Tabs>
        <p class="muted small">
          Bucket credentials come from the environment of the node, as the AWS SDK reads them. Old backups are removed
          by <code>Backup:KeepLast</code>, <code>KeepDaily</code> and similar options; <code>Backup:KeyFile</code>{' '}
          encrypts the repository. The schedule is minute, hour, day of month, month, day of week, in UTC.
        </p>
      </div>
    </Card>
  );
}
