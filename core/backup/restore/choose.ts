import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { timestampText } from '../../base/time.ts';
import type { Repository } from '../repository/api.ts';
import { aheadOfNewest, madeMsOf } from '../format/snapshot-manifest.ts';
import type { Manifest, ManifestChunk, ManifestSummary, ShippedPiece } from '../format/snapshot-manifest.ts';
import { RecordWalk } from '../../log/format/record-walk.ts';
import { chunkEnd, chunkStart, keptEnd, placeOf, stretches } from './restore-locations.ts';
import type { Kept, Stretch } from './restore-locations.ts';

/** What is to be had back. */
export type RestoreChoice =
  /** The newest backup, with all that was shipped after it, or one shortly before it where that reaches further. */
  | { readonly kind: 'latest' }
  /** A backup as it was when it was made. */
  | { readonly kind: 'backup'; readonly id: string }
  /** The log up to a position, which must be a place where it can end. */
  | { readonly kind: 'position'; readonly position: number }
  /**
   * The log up to the last write before the first record later than this, to the millisecond: milliseconds since 1970.
   * Where that can't be had, or was not backed up yet, `orBefore` takes as much of the log before it as can. Warns
   * where the clock was set back, so that there are records of that time behind.
   */
  | { readonly kind: 'time'; readonly timeMs: number; readonly orBefore?: boolean };

export interface ChooseOptions {
  /** Positions and times are those of this node's log. Default: the node of the newest backup. */
  readonly nodeId?: string;
  /** Damaged manifests are passed over, and warned of. Default false: they end the search. */
  readonly allowDamaged?: boolean;
}

/** Which backup serves a wish, and how far. */
export interface RestorePlan {
  readonly manifest: Manifest;
  /** What was shipped after it, as far as it is needed. */
  readonly pieces: readonly ShippedPiece[];
  /** Where the restored log ends. */
  readonly position: number;
  /**
   * Time of the last write, where that is an earlier moment than the one that was asked for; null else. Milliseconds
   * since 1970.
   */
  readonly earlierMs: number | null;
  readonly warnings: readonly string[];
}

/**
 * Finds the backup and the place for a wish. All chunk files of a restore come from one manifest, so that they are a
 * set that was once in force together: for a position or a time the newest one in which that place stands unscavenged.
 * Rejects with `backup_not_found`, `repository_damaged`, and `not_restorable` (data: position, below and above, which
 * are positions; or timeMs, belowMs and aboveMs, the nearest moments that can be had, and earliestMs where there is
 * nothing before).
 */
export async function chooseRestore(
  repository: Repository,
  choice: RestoreChoice,
  options: ChooseOptions = {},
): Promise<RestorePlan> {
  return new Chooser(repository, options).choose(choice);
}

class Chooser {
  readonly #repository: Repository;
  readonly #options: ChooseOptions;
  readonly #warnings: string[] = [];

  constructor(repository: Repository, options: ChooseOptions) {
    this.#repository = repository;
    this.#options = options;
  }

  async choose(choice: RestoreChoice): Promise<RestorePlan> {
    if (choice.kind === 'backup')
      return this.#plan({ manifest: await this.#repository.manifest(choice.id), pieces: [] });
    if (choice.kind === 'latest') return this.#plan(await this.#latest());
    const summaries = await this.#summaries();
    switch (choice.kind) {
      case 'position':
        return this.#toPosition(summaries, choice.position);
      case 'time':
        return this.#toTime(summaries, choice.timeMs, choice.orBefore ?? false);
    }
  }

  async #latest(): Promise<Kept> {
    if (this.#options.nodeId !== undefined || this.#options.allowDamaged === true)
      return this.#furthest(await this.#summaries());
    // Damage to older manifests is no obstacle, and few of them need be read.
    const newest = await this.#repository.manifest('latest');
    const recent = (await this.#repository.backups(() => {}, RECENT_MAX)).filter(
      ({ nodeId }) => nodeId === newest.nodeId,
    );
    // Where what was shipped after the newest is damaged, that shows now.
    if (recent[0]?.id !== newest.id) return { manifest: newest, pieces: await this.#repository.shipped(newest.id) };
    return this.#furthest(recent);
  }

  #furthest(summaries: readonly ManifestSummary[]): Promise<Kept> {
    return furthest(summaries, (summary) => this.#keptOf(summary));
  }

  /** The backups of one node, newest first: at least one. */
  async #summaries(): Promise<readonly ManifestSummary[]> {
    const { allowDamaged, nodeId } = this.#options;
    const onDamaged = (key: string, error: Error) => {
      this.#warnings.push(`The manifest ${key} is damaged and was skipped: ${error.message}`);
    };
    const all = await (allowDamaged === true ? this.#repository.backups(onDamaged) : this.#repository.backups());
    const wanted = nodeId ?? all[0]?.nodeId;
    const summaries = all.filter((summary) => summary.nodeId === wanted);
    if (summaries.length > 0) return summaries;
    throw new SkuaError(
      'backup_not_found',
      nodeId === undefined
        ? `There is no backup in ${this.#repository.place}.`
        : `There is no backup of node ${nodeId} in ${this.#repository.place}. List what is there with \`skua backup list\`.`,
      { place: this.#repository.place },
    );
  }

  async #keptOf({ id, logEnd, shippedEnd }: ManifestSummary): Promise<Kept> {
    const manifest = await this.#repository.manifest(id);
    if (shippedEnd === logEnd) return { manifest, pieces: [] };
    if (this.#options.allowDamaged !== true) return { manifest, pieces: await this.#repository.shipped(id) };
    const pieces = await this.#repository.shipped(id, (key, error) => {
      this.#warnings.push(
        `Shipped log from ${key} on, up to position ${shippedEnd} at least, is damaged and was skipped: ${error.message}`,
      );
    });
    return { manifest, pieces };
  }

  async #toPosition(summaries: readonly ManifestSummary[], position: number): Promise<RestorePlan> {
    if (!Number.isSafeInteger(position) || position < 0)
      throw new SkuaError('bad_option', `A position is a whole number from 0 on, not ${position}.`, { position });
    let near = NOTHING_NEAR;
    for (const summary of summaries) {
      const kept = await this.#keptOf(summary);
      const location = placeOf(this.#repository, kept, position);
      if (location.kind === 'end' && position > 0) return this.#plan(kept, position, summaries);
      if (location.kind === 'beyond') near = nearer(near, { below: await this.#endOf(kept), above: null });
      else if (location.kind === 'scavenged') near = nearer(near, endsOf(kept, location.chunk));
      else if (location.kind === 'log') {
        const { isEnd, ...around } = await lookAround(location.stretch, position);
        if (isEnd) return this.#plan(kept, position, summaries);
        near = nearer(near, around);
        // Records stand at the same places in every backup.
        if (around.above !== null) break;
      }
    }
    throw notRestorable(`position ${position}`, near, { position });
  }

  async #toTime(summaries: readonly ManifestSummary[], timeMs: number, orBefore: boolean): Promise<RestorePlan> {
    if (!Number.isFinite(timeMs))
      throw new SkuaError('bad_option', 'The time to restore to is not a valid time.', { timeMs });
    let before: { readonly kept: Kept; readonly position: number } | null = null;
    let earliestMs: number | null = null;
    // Backups that begin with a chunk that was scavenged, and when what is left of it begins.
    const begun: { readonly kept: Kept; readonly fromMs: number }[] = [];
    const scavenged: Kept[] = [];
    for (const summary of summaries) {
      const kept = await this.#keptOf(summary);
      const found = await findTime(this.#repository, kept, timeMs);
      if (found.kind === 'at') return this.#at(kept, found, timeMs, summaries);
      if (found.kind === 'all' && summary === summaries[0]) return this.#beyond(kept, summaries, timeMs, orBefore);
      // Up to there everything is of that time or before.
      let position = 0;
      if (found.kind === 'all') position = await this.#endOf(kept);
      else if (found.kind === 'scavenged') {
        position = chunkStart(kept.manifest, found.chunk);
        scavenged.push(kept);
      } else {
        // What was there once, a backup from before the scavenge still has.
        if (found.isScavenged) begun.push({ kept, fromMs: found.earliestMs });
        else {
          earliestMs = found.earliestMs;
          break;
        }
      }
      if (position > (before?.position ?? 0)) before = { kept, position };
    }
    const when = timestampText(timeMs, 0);
    if (before === null && scavenged.length === 0) {
      for (const { kept, fromMs } of earliestMs === null ? begun : []) {
        const moment = await this.#momentAfter([kept], summaries[0]!, fromMs);
        if (moment !== null) earliestMs = Math.min(earliestMs ?? Infinity, moment);
      }
      throw new SkuaError(
        'not_restorable',
        `${begun.length === 0 ? 'Nothing had been written' : 'Nothing is left of what was written'} at ${when}: ${earliestMs === null ? 'there is no restore point.' : `the earliest restore point is ${timestampText(earliestMs, 0)}.`}`,
        { timeMs, ...(earliestMs !== null && { earliestMs }), belowMs: null, aboveMs: earliestMs },
      );
    }
    const belowMs = before === null ? null : await lastTimeBefore(this.#repository, before.kept, before.position);
    if (orBefore && before !== null) return this.#plan(before.kept, before.position, summaries, belowMs);
    const aboveMs = await this.#momentAfter(scavenged, summaries[0]!, timeMs);
    throw new SkuaError(
      'not_restorable',
      `The log can't be restored to exactly ${when}: that time is in a chunk that was scavenged since, and no backup from before the scavenge covers it. ${momentsText(belowMs, aboveMs)}`,
      { timeMs, belowMs, aboveMs },
    );
  }

  /** The first moment behind one that was scavenged which one of these backups can serve; null when there is none. */
  async #momentAfter(scavenged: readonly Kept[], newest: ManifestSummary, timeMs: number): Promise<number | null> {
    let first: number | null = null;
    for (const kept of scavenged) {
      const moment = await momentFrom(this.#repository, kept, timeMs);
      // The end of an older backup is no moment: more may have been written in the same one.
      if (moment.isAll && kept.manifest.id !== newest.id) continue;
      first = Math.min(first ?? Infinity, moment.timeMs);
    }
    return first;
  }

  /** What of that time, or before, lies behind the place is not left out without a word. */
  async #at(
    kept: Kept,
    { position, laterMs }: PlaceOfTime,
    timeMs: number,
    summaries: readonly ManifestSummary[],
  ): Promise<RestorePlan> {
    const plan = await this.#plan(kept, position, summaries);
    try {
      const end = await endOfEarlier(this.#repository, kept, position, timeMs);
      if (end !== null)
        this.#warnings.push(
          `The clock was set back: behind position ${position} stand records of ${timestampText(laterMs, 0)}, and then such of ${timestampText(timeMs, 0)} or before again, up to position ${end}, which are not restored. A restore to that position (--to-position ${end}) has them, and all that stands between.`,
        );
    } catch (error) {
      // That is no obstacle to what lies before it.
      if (!isSkuaError(error, 'repository_damaged') && !isSkuaError(error, 'log_corrupt')) throw error;
      this.#warnings.push(
        `Whether records of that time stand behind position ${position} as well, since the clock was set back, is not known: ${error.message}`,
      );
    }
    return plan;
  }

  /**
   * All of the newest backup is of that time: what was shipped behind one before it may be too. Later than all that was
   * backed up nothing is known.
   */
  async #beyond(
    newest: Kept,
    summaries: readonly ManifestSummary[],
    timeMs: number,
    orBefore: boolean,
  ): Promise<RestorePlan> {
    const furthest = await this.#furthest(summaries);
    let kept = newest;
    if (furthest.manifest.id !== newest.manifest.id) {
      const found = await findTime(this.#repository, furthest, timeMs);
      if (found.kind === 'at' && found.position >= keptEnd(newest)) return this.#at(furthest, found, timeMs, summaries);
      if (found.kind === 'all') kept = furthest;
    }
    const plan = await this.#plan(kept);
    const lastMs = await this.#lastMoment(kept, plan.position, timeMs);
    if (timeMs <= lastMs) return plan;
    if (orBefore) return { ...plan, earlierMs: lastMs };
    throw new SkuaError(
      'not_restorable',
      `The log can't be restored to ${timestampText(timeMs, 0)}: it was backed up until ${timestampText(lastMs, 0)}, the last moment that can be had.`,
      { timeMs, belowMs: lastMs, aboveMs: null },
    );
  }

  /**
   * The last moment of which a backup holds all that was acknowledged, or a record. Nothing is read where `timeMs` is
   * no later.
   */
  async #lastMoment(kept: Kept, position: number, timeMs: number): Promise<number> {
    let lastMs = kept.pieces.at(-1)?.shippedMs ?? madeMsOf(kept.manifest);
    if (timeMs <= lastMs) return lastMs;
    for (const { chunk, stretch } of stretches(this.#repository, kept))
      lastMs = Math.max(lastMs, (chunk === null ? await lastTimeIn(stretch, position) : chunk.toMs) ?? lastMs);
    return lastMs;
  }

  /**
   * Where the log of a backup can end last. Pieces are whole records, but the last one may break off inside a write.
   */
  async #endOf({ manifest, pieces }: Kept): Promise<number> {
    for (const piece of [...pieces].reverse()) {
      const walk = new RecordWalk(piece.from);
      walk.push(await this.#repository.readShipped(piece), () => true);
      if (walk.end > piece.from) return walk.end;
    }
    return manifest.checkpoints.writer;
  }

  async #plan(
    kept: Kept,
    wanted?: number,
    summaries: readonly ManifestSummary[] = [],
    earlierMs: number | null = null,
  ): Promise<RestorePlan> {
    const { manifest } = kept;
    const position = wanted ?? (await this.#endOf(kept));
    if (position === 0)
      throw new SkuaError(
        'not_restorable',
        `The backup ${manifest.id} holds no events: starting a node on an empty directory gives the same result.`,
        { position, below: null, above: null },
      );
    if (position < manifest.checkpoints.writer) await this.#warnOfLaterScavenges(manifest, position, summaries);
    return {
      manifest,
      pieces: kept.pieces.filter((piece) => piece.from < position),
      position,
      earlierMs,
      warnings: this.#warnings,
    };
  }

  /**
   * A scavenge after the place may have removed what was still there then; a backup from before the place tells which
   * chunks looked the same.
   */
  async #warnOfLaterScavenges(
    manifest: Manifest,
    position: number,
    summaries: readonly ManifestSummary[],
  ): Promise<void> {
    const scavenged = manifest.chunks.filter((chunk) => chunk.isScavenged && chunkEnd(manifest, chunk) <= position);
    if (scavenged.length === 0) return;
    const earlier = summaries.find((summary) => summary.logEnd <= position);
    const same = new Set(
      earlier === undefined ? [] : (await this.#repository.manifest(earlier.id)).chunks.map(({ blob }) => blob),
    );
    const changed = scavenged.filter(({ blob }) => !same.has(blob));
    if (changed.length === 0) return;
    const from = chunkStart(manifest, changed[0]!);
    const to = chunkEnd(manifest, changed.at(-1)!);
    this.#warnings.push(
      `${changed.length} of the chunks before position ${position} (between ${from} and ${to}) were, or may have been, scavenged later than that: events that were deleted or had expired by then are gone, although they could be read at that position.`,
    );
  }
}

function momentsText(belowMs: number | null, aboveMs: number | null): string {
  const [below, above] = [belowMs, aboveMs].map((ms) => (ms === null ? null : timestampText(ms, 0)));
  if (below === null)
    return above === null
      ? 'There is no other restore point.'
      : `There is no restore point before it; the nearest after it is ${above}.`;
  return above === null
    ? `The nearest restore point is ${below}, before it; there is none after it.`
    : `The nearest restore points are ${below}, before it, and ${above}, after it.`;
}

function notRestorable(what: string, { below, above }: Nearest, data: Record<string, unknown>): SkuaError {
  const near =
    below === null && above === null
      ? 'No position near it can be restored.'
      : `The nearest positions that can be restored are ${[below, above].filter((location) => location !== null).join(' and ')}.`;
  return new SkuaError(
    'not_restorable',
    `The log can't be restored to exactly ${what}: it is inside a write, in a chunk that was scavenged since, or after the end of the backups. ${near}`,
    { ...data, below, above },
  );
}

/**
 * Backups among which a restore of the latest looks for the one that reaches furthest: more are never made while one
 * is.
 */
const RECENT_MAX = 16;

/** Of the backups of one node, newest first and at least one, the one that gives most back. */
async function furthest(
  summaries: readonly ManifestSummary[],
  keptOf: (summary: ManifestSummary) => Promise<Kept>,
): Promise<Kept> {
  let best: Kept | null = null;
  // Damage may have taken the end of what a summary promises.
  for (const summary of [...aheadOfNewest(summaries).toSorted((a, b) => b.shippedEnd - a.shippedEnd), summaries[0]!]) {
    if (best !== null && keptEnd(best) >= summary.shippedEnd) break;
    const kept = await keptOf(summary);
    if (best === null || keptEnd(kept) > keptEnd(best)) best = kept;
  }
  return best!;
}

/** The places nearest to a position, or to a time, where the log can end; null where there is none. */
interface Nearest {
  readonly below: number | null;
  readonly above: number | null;
}

const NOTHING_NEAR: Nearest = { below: null, above: null };

/** The nearer ones of two. */
function nearer(a: Nearest, b: Nearest): Nearest {
  const below = Math.max(a.below ?? 0, b.below ?? 0);
  const above = Math.min(a.above ?? Number.MAX_SAFE_INTEGER, b.above ?? Number.MAX_SAFE_INTEGER);
  return { below: below === 0 ? null : below, above: above === Number.MAX_SAFE_INTEGER ? null : above };
}

/** The ends of a chunk of which nothing in between can be restored. */
function endsOf(kept: Kept, chunk: ManifestChunk): Nearest {
  return { below: chunkStart(kept.manifest, chunk) || null, above: chunkEnd(kept.manifest, chunk) };
}

/** Looks around a position inside a stretch. `isEnd` when the log can end exactly there. */
async function lookAround(
  { from, to, content }: Stretch,
  position: number,
): Promise<Nearest & { readonly isEnd: boolean }> {
  const walk = new RecordWalk(from);
  let below = from;
  let above: number | null = null;
  let isEnd = false;
  const look = ({ end }: RecordWalk): boolean => {
    if (end < position) below = end;
    else if (end === position) isEnd = true;
    else above = end;
    return above === null;
  };
  for await (const bytes of content()) if (!walk.push(bytes, look)) break;
  if (above === null && to > position) above = to;
  return { isEnd, below: below === 0 ? null : below, above };
}

/** The place behind the last write before the first later record, and the time of that record. */
interface PlaceOfTime {
  readonly kind: 'at';
  readonly position: number;
  readonly laterMs: number;
}

/** What a backup says of a time. */
type FoundTime =
  /** Everything in it is of that time or before. */
  | { readonly kind: 'all' }
  | PlaceOfTime
  /**
   * Already the first write has a later record; from `earliestMs` on it has none. Where it was scavenged, there may
   * have been others before it.
   */
  | { readonly kind: 'before'; readonly earliestMs: number; readonly isScavenged: boolean }
  /** The place lies in a chunk that was scavenged. */
  | { readonly kind: 'scavenged'; readonly chunk: ManifestChunk };

/**
 * Finds the end of the last write before the first record later than `timeMs`, first in the order of the log, whatever
 * the clock did meanwhile. Chunks without a later record are passed over unread.
 */
async function findTime(repository: Repository, kept: Kept, timeMs: number): Promise<FoundTime> {
  for (const { chunk, stretch } of stretches(repository, kept)) {
    if (chunk !== null && (chunk.toMs === null || chunk.toMs <= timeMs)) continue;
    if (chunk?.isScavenged === true) {
      if ((chunk.fromMs ?? timeMs) <= timeMs) return { kind: 'scavenged', chunk };
      return stretch.from === 0
        ? { kind: 'before', earliestMs: chunk.fromMs!, isScavenged: true }
        : { kind: 'at', position: stretch.from, laterMs: chunk.fromMs! };
    }
    const found = await firstLater(stretch, timeMs);
    if (found !== null) return found;
  }
  return { kind: 'all' };
}

async function firstLater({ from, content }: Stretch, timeMs: number): Promise<FoundTime | null> {
  const walk = new RecordWalk(from);
  let position = -1;
  let laterMs = 0;
  let writeMs = -Infinity;
  const look = (): boolean => {
    writeMs = Math.max(writeMs, walk.timeMs);
    if (position < 0 && walk.timeMs > timeMs) {
      position = walk.before;
      laterMs = walk.timeMs;
    }
    // The first write of all is read to its end, since its latest record says from when on something can be restored.
    if (position > 0 || (position === 0 && walk.endsWrite)) return false;
    if (walk.endsWrite) writeMs = -Infinity;
    return true;
  };
  for await (const bytes of content()) if (!walk.push(bytes, look)) break;
  if (position < 0) return null;
  return position === 0
    ? { kind: 'before', earliestMs: writeMs, isScavenged: false }
    : { kind: 'at', position, laterMs };
}

/**
 * Where the log can end behind the last record of this time, or before, that stands behind a later one from `position`
 * on; null where there is none.
 */
async function endOfEarlier(
  repository: Repository,
  kept: Kept,
  position: number,
  timeMs: number,
): Promise<number | null> {
  for (const { chunk, stretch } of [...stretches(repository, kept)].reverse()) {
    if (stretch.to <= position) return null;
    if (chunk !== null && (chunk.fromMs === null || chunk.fromMs > timeMs)) continue;
    const end = chunk?.isScavenged === true ? stretch.to : await endOfEarlierIn(stretch, position, timeMs);
    if (end !== null) return end;
  }
  return null;
}

async function endOfEarlierIn({ from, content }: Stretch, position: number, timeMs: number): Promise<number | null> {
  const walk = new RecordWalk(from);
  let isBehind = from > position;
  let isEarlier = false;
  let end: number | null = null;
  const look = (): boolean => {
    if (walk.position <= position) return true;
    if (walk.timeMs > timeMs) isBehind = true;
    else if (isBehind) isEarlier = true;
    if (walk.endsWrite && isEarlier) {
      end = walk.position;
      isEarlier = false;
    }
    return true;
  };
  for await (const bytes of content()) walk.push(bytes, look);
  return end;
}

/** The first moment from `timeMs` on that a backup can serve, and whether all of it is of that moment or before. */
async function momentFrom(
  repository: Repository,
  kept: Kept,
  timeMs: number,
): Promise<{ readonly timeMs: number; readonly isAll: boolean }> {
  let moment = timeMs;
  for (const { chunk, stretch } of stretches(repository, kept)) {
    if (chunk !== null && (chunk.toMs === null || chunk.toMs <= moment)) continue;
    if (chunk?.isScavenged === true && (chunk.fromMs ?? moment) <= moment) moment = chunk.toMs!;
    else if (chunk !== null || (await firstLater(stretch, moment)) !== null) return { timeMs: moment, isAll: false };
  }
  return { timeMs: moment, isAll: true };
}

/**
 * Latest time of the records before a place where a chunk begins or the log of a backup ends; null when there are none.
 */
async function lastTimeBefore(repository: Repository, kept: Kept, position: number): Promise<number | null> {
  for (const { chunk, stretch } of [...stretches(repository, kept)].reverse()) {
    if (stretch.from >= position) continue;
    const lastMs = chunk === null ? await lastTimeIn(stretch, position) : chunk.toMs;
    if (lastMs !== null) return lastMs;
  }
  return null;
}

async function lastTimeIn({ from, content }: Stretch, position: number): Promise<number | null> {
  const walk = new RecordWalk(from);
  let lastMs: number | null = null;
  const look = (): boolean => {
    if (walk.position <= position) lastMs = Math.max(lastMs ?? 0, walk.timeMs);
    return walk.position < position;
  };
  for await (const bytes of content()) if (!walk.push(bytes, look)) break;
  return lastMs;
}
