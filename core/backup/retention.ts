/** How many backups of a node stay: the last ones, and the last of each of so many hours, days and weeks (UTC) that have any. */
export interface Retention {
  readonly last: number;
  readonly hourly: number;
  readonly daily: number;
  readonly weekly: number;
}

export interface Retained {
  readonly id: string;
  readonly nodeId: string;
  readonly createdMs: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;
/** 1970 began on a Thursday; weeks begin on Mondays. */
const WEEK_OFFSET_MS = 3 * DAY_MS;

/**
 * Ids of the backups that stay. Every node is looked at by itself, and the newest backup of each always stays. A rule that is
 * 0 keeps nothing; when all are, everything stays.
 */
export function retained(backups: readonly Retained[], retention: Retention): Set<string> {
  const { last, hourly, daily, weekly } = retention;
  if (last + hourly + daily + weekly === 0) return new Set(backups.map(({ id }) => id));
  const kept = new Set<string>();
  for (const nodeId of new Set(backups.map((backup) => backup.nodeId))) {
    const own = backups.filter((backup) => backup.nodeId === nodeId).toSorted((a, b) => b.createdMs - a.createdMs);
    for (const { id } of own.slice(0, Math.max(1, last))) kept.add(id);
    keepOnePer(own, hourly, (ms) => Math.floor(ms / HOUR_MS), kept);
    keepOnePer(own, daily, (ms) => Math.floor(ms / DAY_MS), kept);
    keepOnePer(own, weekly, (ms) => Math.floor((ms + WEEK_OFFSET_MS) / WEEK_MS), kept);
  }
  return kept;
}

/** Keeps the newest of each of the last `count` periods in which there are any. */
function keepOnePer(newestFirst: readonly Retained[], count: number, periodOf: (ms: number) => number, kept: Set<string>): void {
  let period = NaN;
  let left = count;
  for (const { id, createdMs } of newestFirst) {
    if (periodOf(createdMs) === period) continue;
    if (left-- <= 0) return;
    period = periodOf(createdMs);
    kept.add(id);
  }
}
