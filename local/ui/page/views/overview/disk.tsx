import type { OverviewView } from '../../../../../handlers/documents/node.ts';
import { bytesText, percentText } from '../../lib/format.ts';
import { Card } from '../../parts/card.tsx';
import { Shares } from '../../parts/progress.tsx';

/** Below this share of the disk it is time to do something. */
export const LOW_SHARE = 0.1;

export function Disk({ disk }: { readonly disk: NonNullable<OverviewView['disk']> }) {
  return (
    <Card
      title="Disk"
      note={
        <span class="break">
          {disk.folder}, {percentText(1 - disk.freeBytes / disk.totalBytes)} used
        </span>
      }
    >
      <Shares
        label="Disk usage"
        total={disk.totalBytes}
        format={bytesText}
        parts={[
          { label: 'Log', value: disk.chunkBytes },
          { label: 'Index', value: disk.indexBytes },
          { label: 'Others', value: disk.totalBytes - disk.freeBytes - disk.chunkBytes - disk.indexBytes, series: 6 },
          { label: 'Free', value: disk.freeBytes, series: 'rest' },
        ]}
      />
    </Card>
  );
}
