import { useMemo, useState } from 'preact/hooks';
import {
  absoluteText,
  bytesText,
  clockText,
  dayText,
  minuteText,
  msOf,
  relativeText,
  weekdayMinuteText,
} from '../../lib/format.ts';
import { now } from '../../lib/now.ts';
import { Button } from '../../parts/button.tsx';
import { Card } from '../../parts/card.tsx';
import { CAUSES, takenMs } from './backups-api.ts';
import type { Restorable } from './backups-api.ts';
import type { BackupDocument as Backup } from '../../../../../handlers/documents/backup.ts';
import type { BackupStatusDocument } from '../../../../../handlers/documents/backup.ts';
import type { RestoreChoice } from './restore.tsx';

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** What is looked at; null for all there is. */
const SPANS = [
  { label: '24 h', ms: DAY_MS },
  { label: '7 d', ms: 7 * DAY_MS },
  { label: '30 d', ms: 30 * DAY_MS },
  { label: 'All', ms: null },
] as const;
/** Marks are apart by the width of one that stands for several. */
const MARK_PX = 16;
/** What the line takes of the window's width, whether the menu stands beside it or not. */
const LINE_SHARE = 0.75;
const TICKS = 5;
/** Steps of a moment that is chosen by the keys. */
const STEPS = 500;

interface Mark {
  readonly share: number;
  readonly backup: Backup;
  /** With those that stand at the same place. */
  readonly count: number;
}

/**
 * The backups along the time, up to where one can go back, and what would be lost. A click or the arrow keys choose a
 * moment.
 */
export function Timeline({
  backups,
  restorable,
  status,
  wish,
  onWish,
}: {
  readonly backups: readonly Backup[];
  /** Gaps are what a scavenge removed and no backup from before it has. */
  readonly restorable: readonly Restorable[];
  readonly status: BackupStatusDocument;
  readonly wish: RestoreChoice;
  readonly onWish: (wanted: RestoreChoice) => void;
}) {
  const [span, setSpan] = useState<number | null>(null);
  const nowMs = now.value;
  const firstBackupMs = Math.min(...backups.map(({ createdAt }) => Date.parse(createdAt)));
  const oldest = Math.min(firstBackupMs, ...restorable.map(({ fromMs }) => fromMs));
  // Some room before the first one, and never so little that seconds would look like days.
  const from = span === null ? oldest - Math.max(HOUR_MS / 12, (nowMs - oldest) * 0.04) : nowMs - span;
  const whole = Math.max(1, nowMs - from);
  const shareOf = (ms: number) => Math.min(1, Math.max(0, (ms - from) / whole));
  const reachMs = msOf(status.restorable?.at) ?? oldest;
  const lastMs = restorable.at(-1)?.toMs ?? oldest;
  // What was not written can't be lost.
  const isAll = status.unshippedBytes === 0;
  const marks = useMemo(
    () => marksOf(backups, from, whole, MARK_PX / (LINE_SHARE * innerWidth)),
    [backups, Math.round(from / 1_000), Math.round(whole / 1_000), innerWidth],
  );
  const chosen =
    wish.kind === 'moment' ? wish.ms : wish.kind === 'backup' ? Date.parse(wish.backup.createdAt) : reachMs;
  const step = Math.max(1_000, Math.round(whole / STEPS / 1_000) * 1_000);
  return (
    <Card
      title="Timeline"
      note="choose a restore point"
      actions={
        <div class="segments" role="group" aria-label="Time range">
          {SPANS.map(({ label, ms }) => (
            <Button key={label} isSmall kind="quiet" isPressed={ms === span} onClick={() => setSpan(ms)}>
              {label}
            </Button>
          ))}
        </div>
      }
    >
      <div class="timeline">
        <div class="timeline-track">
          {restorable.map(({ fromMs, toMs }) => (
            <div
              key={fromMs}
              class="timeline-reach"
              style={{ left: `${shareOf(fromMs) * 100}%`, width: `${(shareOf(toMs) - shareOf(fromMs)) * 100}%` }}
              title={`Restorable from ${absoluteText(fromMs)} to ${absoluteText(toMs)}`}
            />
          ))}
          <div
            class={`timeline-lost${isAll ? ' none' : ''}`}
            style={{ left: `${shareOf(reachMs) * 100}%` }}
            title={isAll ? 'No writes since' : 'Not in the repository yet'}
          />
          {marks.map(({ share, backup, count }) => (
            <span key={backup.id}>
              {shareOf(Date.parse(backup.shippedAt)) > share && (
                <span
                  class="timeline-shipped"
                  style={{
                    left: `${share * 100}%`,
                    width: `${(shareOf(Date.parse(backup.shippedAt)) - share) * 100}%`,
                  }}
                />
              )}
              <span
                class={`timeline-mark fill-${CAUSES[backup.cause].series}${count > 1 ? ' many' : ''}`}
                style={{ left: `${share * 100}%` }}
                title={`${absoluteText(Date.parse(backup.createdAt))}, ${bytesText(backup.sizeBytes)}, ${CAUSES[backup.cause].word}${count > 1 ? `, and ${count - 1} more nearby` : ''}`}
              />
            </span>
          ))}
          {chosen >= from && (
            <span
              class={`timeline-chosen${wish.kind === 'newest' ? ' quiet' : ''}`}
              style={{ left: `${shareOf(chosen) * 100}%` }}
              aria-hidden="true"
            />
          )}
          {restorable.length > 0 && (
            <input
              type="range"
              aria-label="Restore point"
              aria-valuetext={absoluteText(chosen)}
              min={Math.ceil(from)}
              max={Math.max(Math.ceil(from), lastMs)}
              step={step}
              value={Math.min(chosen, lastMs)}
              style={{ width: `${shareOf(lastMs) * 100}%` }}
              onInput={(event) =>
                onWish({ kind: 'moment', ms: takenMs(restorable, Number(event.currentTarget.value), chosen) })
              }
            />
          )}
        </div>
        <div class="timeline-axis" aria-hidden="true">
          {Array.from({ length: TICKS }, (_, i) => (
            <span key={i} style={{ left: `${(i / (TICKS - 1)) * 100}%` }}>
              {i === TICKS - 1 ? 'now' : tickText(from + (whole * i) / (TICKS - 1), whole)}
            </span>
          ))}
        </div>
        <ul class="timeline-legend">
          {(Object.keys(CAUSES) as Backup['cause'][])
            .filter((cause) => backups.some((backup) => backup.cause === cause))
            .map((cause) => (
              <li key={cause} title={CAUSES[cause].about}>
                <span class={`key round fill-${CAUSES[cause].series}`} />
                Full backup, {CAUSES[cause].word}
              </li>
            ))}
          {backups.some(({ createdAt, shippedAt }) => Date.parse(shippedAt) > Date.parse(createdAt)) && (
            <li title="New log, shipped after a backup every few seconds">
              <span class="key line fill-1" />
              Shipped log
            </li>
          )}
          <li>
            <span class="key reach" />
            Restorable to any point in time
          </li>
          {restorable.length > 1 && (
            <li title="A scavenge removed what stood there, and no backup from before it has it">
              <span class="key gap" />
              Not restorable
            </li>
          )}
          {!isAll && (
            <li>
              <span class="key lost" />
              At risk
            </li>
          )}
          <li class="push faint">
            Restore point:{' '}
            {wish.kind === 'newest' ? 'latest' : `${absoluteText(chosen)} (${relativeText(chosen, nowMs)})`}
          </li>
        </ul>
        {oldest < firstBackupMs && (
          <p class="faint small">
            A backup holds the log from its beginning, so points in time before the first backup can be restored, too.
          </p>
        )}
      </div>
    </Card>
  );
}

/** Marks nearer to each other would lie on each other: the newest backup stands for all of them. */
function marksOf(backups: readonly Backup[], from: number, whole: number, shareMin: number): readonly Mark[] {
  const marks: Mark[] = [];
  const sorted = backups.toSorted((one, other) => Date.parse(other.createdAt) - Date.parse(one.createdAt));
  for (const backup of sorted) {
    const share = (Date.parse(backup.createdAt) - from) / whole;
    if (share < 0 || share > 1) continue;
    const last = marks.at(-1);
    if (last !== undefined && last.share - share < shareMin)
      marks[marks.length - 1] = { ...last, count: last.count + 1 };
    else marks.push({ share, backup, count: 1 });
  }
  return marks;
}

function tickText(ms: number, whole: number): string {
  // Steps of minutes and some seconds would look uneven without these.
  if (whole <= HOUR_MS) return clockText(ms);
  return whole <= 1.5 * DAY_MS ? minuteText(ms) : whole <= 8 * DAY_MS ? weekdayMinuteText(ms) : dayText(ms);
}
