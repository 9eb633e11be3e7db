import { useEffect } from 'preact/hooks';
import { overview } from '../../api/overview-client.ts';
import type { GossipDocument, OverviewView } from '../../../../../handlers/documents/node.ts';
import { usePolled } from '../../api/polled.ts';
import { bytesText, countText, durationText, percentText, shortText } from '../../lib/format.ts';
import { evenly } from '../../lib/history.ts';
import { Badge } from '../../parts/badge.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { unitText } from '../../parts/chart.tsx';
import { CopyButton } from '../../parts/copy-button.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { Dotted } from '../../parts/dotted.tsx';
import { Loading } from '../../parts/loading.tsx';
import { Bytes, Num } from '../../parts/amount.tsx';
import { Stat } from '../../parts/stat.tsx';
import { Time } from '../../parts/time.tsx';
import { inMs } from '../../shell/sampler.ts';
import { Charts, useOverviewPast } from './charts.tsx';
import { Disk, LOW_SHARE } from './disk.tsx';
import { ROLES, WELL } from './member.ts';
import { Members } from './members.tsx';
import { Certificates, Licence } from './credentials.tsx';
import { Warnings } from './warnings.tsx';

const EVERY_MS = 2_000;

/** How the node is, and what should be done about it. */
export default function Overview() {
  const polled = overview();
  useEffect(() => polled.use(EVERY_MS), [polled]);
  return (
    <>
      {polled.data.value === null && <ViewHead title="Overview" />}
      <Loading polled={polled} what="The overview" lines={8}>
        {(data) => <Known data={data} />}
      </Loading>
    </>
  );
}

function Known({ data }: { readonly data: OverviewView }) {
  const { node, log, disk, activity, process, connections, licence, warnings } = data;
  const gossip = usePolled<GossipDocument>(node.isMember ? '/gossip' : null, EVERY_MS);
  const { node: kept, past } = useOverviewPast();
  const { values } = past.hour;
  const points = (name: string) => evenly(past.hour, name);
  // What is not known at this moment (nothing was appended, or it was asked for once) is what it was last.
  const last = (value: number | null, name: string) => value ?? values[name]?.findLast((one) => one !== null) ?? null;
  return (
    <>
      <ViewHead
        title="Overview"
        about={
          <Dotted
            items={[
              node.address,
              `version ${node.version}`,
              `up ${durationText(Math.floor(node.uptimeSeconds) * 1_000)}`,
            ]}
          />
        }
      >
        <Badge tone={WELL.has(node.state) ? 'ok' : 'warn'}>
          {!node.isMember && node.state === 'Leader' ? 'Single node' : ROLES[node.state]}
        </Badge>
        {!node.isSecure && (
          <Badge tone="warn" title="Connections are not encrypted.">
            No TLS
          </Badge>
        )}
      </ViewHead>
      <Warnings warnings={warnings} />
      <div class="tiles of-six">
        <Stat
          label="Appends"
          value={unitText(last(activity.appendsPerSecond, 'appends'), 'perSecond')}
          note={`${shortText(last(activity.eventsWrittenPerSecond, 'written'))} events/s`}
          points={points('appends')}
        />
        <Stat
          label="Events read"
          value={unitText(last(activity.eventsReadPerSecond, 'read'), 'perSecond')}
          note={unitText(last(activity.bytesReadPerSecond, 'bytesRead'), 'bytesPerSecond')}
          points={points('read')}
        />
        <Stat
          label="Append latency, p99"
          value={durationText(last(inMs(activity.appendP99Seconds), 'appendP99'))}
          note={`${log.appendsQueued === 0 ? 'none' : shortText(log.appendsQueued)} waiting`}
          points={points('appendP99')}
        />
        <Stat
          label="HTTP requests"
          value={unitText(last(activity.requestsPerSecond, 'requests'), 'perSecond')}
          note={`${shortText(connections)} connections`}
          points={points('requests')}
        />
        <Stat
          label={disk === null ? 'Log' : 'Log on disk'}
          value={bytesText(log.bytes)}
          note={countText(log.chunks, 'chunk file')}
        />
        {disk !== null && (
          <Stat
            label="Free disk space"
            value={bytesText(disk.freeBytes)}
            note={`${percentText(disk.freeBytes / disk.totalBytes)} of ${bytesText(disk.totalBytes)}`}
            {...(disk.freeBytes / disk.totalBytes < LOW_SHARE && { tone: 'warn' as const })}
          />
        )}
      </div>
      {node.isMember && (
        <Loading polled={gossip} what="The members">
          {(known) => <Members gossip={known} />}
        </Loading>
      )}
      <Charts node={kept} past={past} />
      <div class="masonry">
        <Card title="Log and index">
          <Definitions
            items={[
              ['End of the log', <Num value={log.end} />],
              ['Last commit', <Num value={log.lastCommitPosition} />],
              [
                'Index entries',
                <>
                  <Num value={log.indexEntries + log.indexEntriesInMemory} />{' '}
                  <span class="faint">
                    in {log.indexTables} {log.indexTables === 1 ? 'table' : 'tables'}
                  </span>
                </>,
              ],
              ['of these in memory', <Num value={log.indexEntriesInMemory} />],
              ['Checksums not yet verified', log.bytesUnproven === 0 ? 'nothing' : <Bytes value={log.bytesUnproven} />],
              ['Subscriptions', <Num value={log.subscriptions} />],
            ]}
          />
        </Card>
        {disk !== null && <Disk disk={disk} />}
        <Card title="Process">
          <Definitions
            items={[
              ['CPU', percentText(process.cpuPercent === null ? null : process.cpuPercent / 100)],
              ['Memory', <Bytes value={process.memoryBytes} />],
              ['of this in the heap', <Bytes value={process.heapBytes} />],
              ['Started', <Time at={node.startedAt} show="absolute" />],
              [
                'Instance',
                <span class="row instance">
                  <code class="break">{node.instanceId}</code>
                  <CopyButton text={node.instanceId} label="Copy the instance id" />
                </span>,
              ],
            ]}
          />
        </Card>
        <Certificates data={data} />
        <Licence licence={licence} />
      </div>
    </>
  );
}
