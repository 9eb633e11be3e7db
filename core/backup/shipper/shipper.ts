import { BytePace } from '../create/store-part.ts';
import { equalBytes, gather } from '../../base/bytes.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { streamHasher } from '../../base/stream-hash.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Repository } from '../repository/api.ts';
import { logEndOf, madeMsOf } from '../format/snapshot-manifest.ts';
import type { Manifest, ShippedPiece } from '../format/snapshot-manifest.ts';
import { nextChunk } from '../repository/shipped.ts';
import { RecordWalk } from '../../log/format/record-walk.ts';
import { goesOnAt, nextPiece } from '../../store/shippable-log/shippable-log.ts';
import type { ShippableLog } from '../../store/api.ts';
import { ReadRecords } from '../../streams/committed/committed.ts';

/** After so many pieces a new base is asked for, and after so many more nothing is shipped without one. */
export const PIECES_MAX = 512;
const PIECES_HARD_MAX = 4_096;
/** A base that was asked for and did not come is asked for again after this many milliseconds. */
const ASK_AGAIN_MS = 600_000;
/** First and longest pause after an error of the store, in milliseconds. */
const BACK_OFF_MS_MIN = 1_000;
const BACK_OFF_MS_MAX = 60_000;
export type BaseReason =
  /** There is no backup of this node yet. */
  | 'none'
  /**
   * The log goes on in another chunk than the backup: what is shipped meanwhile would be restored into chunk files made
   * anew.
   */
  | 'chunk'
  /** A chunk file of the backup was replaced. When it is one that was not shipped whole, nothing can follow. */
  | 'scavenged'
  /** A restore would have to gather too many pieces. */
  | 'many'
  /** The log in the repository is not the one here: another process ships there, or the log was cut. */
  | 'other'
  /** What was shipped is damaged: nothing can follow it. */
  | 'damaged'
  /** A single write that no piece can hold. */
  | 'large';

export interface ShipperParts {
  /** The repository, open; asked for anew after an error. */
  readonly repository: () => Promise<Repository>;
  readonly nodeId: string;
  readonly log: ShippableLog;
  readonly clock: Clock;
  /** Bytes a second, 0 for no limit. */
  readonly throttleBytesPerSecond?: number;
  /** Asks for a backup of this node with cause `shipping`; `rebase` is to be called when it was made. */
  readonly onBaseWanted: (reason: BaseReason) => void;
  readonly signal?: AbortSignal;
}

export interface ShipOutcome {
  /** Bytes shipped by this call. */
  readonly shippedBytes: number;
  /** Why a base was found wanting, or null. */
  readonly wants: BaseReason | null;
  /** What ended the call early; the next one that is not too soon goes on. */
  readonly error: unknown;
}

/**
 * Ships the end of the log after the newest backup of the node, piece by piece and from chunk to chunk. It holds
 * nothing that it could not read from the repository again: `tick` may be called at any time, one call at a time, by
 * whichever process runs the node now. Pieces are created under a key that only one writer gets, and the place moves on
 * only behind one that is there.
 */
export class Shipper {
  readonly #parts: ShipperParts;
  readonly #pace: BytePace;
  readonly #records = new ReadRecords(streamHasher);
  readonly #startedMs: number;
  #place: ShippingPosition | null = null;
  /**
   * What a restore of the latest would give: that of the newest backup or, until shipping behind that has caught up, of
   * the one before it. Null until it is known.
   */
  #reach: Pick<ShippingPosition, 'manifest' | 'position' | 'shippedMs'> | null = null;
  /** When all of the log was there last, as far as this process knows; null before it has looked. */
  #completeMs: number | null = null;
  #askedMs = -Infinity;
  #askedAfter: string | null = null;
  #failures = 0;
  #pauseUntilMs = -Infinity;

  constructor(parts: ShipperParts) {
    this.#parts = parts;
    this.#pace = new BytePace(parts.clock, parts.throttleBytesPerSecond ?? 0, parts.signal);
    this.#startedMs = parts.clock.nowMs();
  }

  /** Log that would be lost with this node: all of it until the place in the repository is known. */
  get unshippedBytes(): number {
    const { log } = this.#parts;
    const position = this.#reach?.position ?? 0;
    return Math.max(0, log.end - (goesOnAt(log, position) ?? position));
  }

  /** Up to where and when a restore of the newest state reaches; null until that is known. */
  get reach(): { readonly position: number; readonly shippedMs: number } | null {
    return this.#reach;
  }

  /** How long ago everything was in the repository, in milliseconds; 0 when it is. */
  get lagMs(): number {
    return this.unshippedBytes === 0
      ? 0
      : Math.max(0, this.#parts.clock.nowMs() - (this.#completeMs ?? this.#startedMs));
  }

  /** A new backup was made: the next call finds it. */
  rebase(): void {
    this.#place = null;
    this.#askedMs = -Infinity;
  }

  /** Ships what there is. Never rejects. */
  async tick(): Promise<ShipOutcome> {
    const { clock } = this.#parts;
    if (clock.monotonicMs() < this.#pauseUntilMs) return { shippedBytes: 0, wants: null, error: null };
    const done = { shippedBytes: 0 };
    try {
      const wants = await this.#shipAll(done);
      this.#failures = 0;
      if (wants !== null) this.#ask(wants);
      if (wants === 'none' || wants === 'other' || wants === 'damaged') {
        // What is in the repository is no use to this log, or can't be built upon.
        this.#place = null;
        this.#reach = null;
      }
      if (this.unshippedBytes === 0) this.#completeMs = clock.nowMs();
      return { ...done, wants, error: null };
    } catch (error) {
      // Where it stands is found out anew: a call may have had its effect.
      this.#place = null;
      this.#pauseUntilMs = clock.monotonicMs() + Math.min(BACK_OFF_MS_MAX, BACK_OFF_MS_MIN * 2 ** this.#failures++);
      return { ...done, wants: null, error };
    }
  }

  /** A base is asked for once, and again when it does not come. */
  #ask(reason: BaseReason): void {
    const { clock, onBaseWanted } = this.#parts;
    const after = this.#place?.manifest.id ?? null;
    if (after === this.#askedAfter && clock.monotonicMs() - this.#askedMs < ASK_AGAIN_MS) return;
    this.#askedAfter = after;
    this.#askedMs = clock.monotonicMs();
    onBaseWanted(reason);
  }

  async #shipAll(done: { shippedBytes: number }): Promise<BaseReason | null> {
    const { log, repository: open, signal, clock } = this.#parts;
    const repository = await open();
    if (
      this.#place !== null &&
      this.#toShip(this.#place) !== null &&
      (await isSuperseded(this.#parts, repository, this.#place))
    )
      this.#place = null;
    if (this.#place === null) {
      const found = await findPlace(this.#parts, repository);
      if (typeof found === 'string') return found;
      this.#place = found;
      this.#completeMs ??= found.shippedMs;
      await this.#noteReach(repository, found);
    }
    const location = this.#place;
    for (;;) {
      if (!reaches(log, location.position)) return 'other';
      const nowMs = clock.nowMs();
      const range = this.#toShip(location);
      if (range === null || location.pieces >= PIECES_HARD_MAX) break;
      if (signal?.aborted === true) return null;
      const bytes = await nextPiece(log, range.from, range.limit);
      if (bytes === null) return 'large';
      // All that was acknowledged until then is shipped with it: of a piece behind which more is to come that is less.
      const isLast = range.isLast && range.from + bytes.length === range.limit;
      const shippedMs = isLast ? nowMs : Math.min(nowMs, lastTimeIn(bytes, range.from));
      await this.#pace.take(bytes.length);
      if (!(await this.#ship(repository, location, { from: range.from, shippedMs }, bytes))) return 'other';
      done.shippedBytes += bytes.length;
      await this.#noteReach(repository, location);
    }
    return this.#wantsBase(location);
  }

  /** What can be shipped next: all in one chunk. */
  #toShip({
    position,
  }: ShippingPosition): { readonly from: number; readonly limit: number; readonly isLast: boolean } | null {
    const { log } = this.#parts;
    const from = goesOnAt(log, position);
    if (from === null) return null;
    const { end } = log;
    const limit = Math.min(end, log.dataEnd(Math.floor(from / log.chunkSizeBytes)));
    return from < limit ? { from, limit, isLast: limit === end } : null;
  }

  /**
   * A backup that reached further before the newest was made is what a restore takes, until it is caught up with, or
   * removed.
   */
  async #noteReach(repository: Repository, { manifest, position, shippedMs }: ShippingPosition): Promise<void> {
    const before = this.#reach;
    const isBehind =
      before !== null &&
      before.manifest.id !== manifest.id &&
      before.position > position &&
      before.shippedMs >= madeMsOf(manifest);
    if (isBehind && (await repository.manifestsFrom(before.manifest))[0] === before.manifest.id) return;
    this.#reach = { manifest, position, shippedMs };
  }

  #wantsBase({ manifest, position, pieces }: ShippingPosition): BaseReason | null {
    const { log } = this.#parts;
    if (goesOnAt(log, position) === null) return 'scavenged';
    const logEnd = logEndOf(manifest);
    if (log.end > logEnd && log.end >= nextChunk(logEnd, log.chunkSizeBytes)) return 'chunk';
    const inForce = new Set(log.chunkNames());
    if (manifest.chunks.some(({ path }) => !inForce.has(path))) return 'scavenged';
    return pieces >= PIECES_MAX ? 'many' : null;
  }

  /** False when another process has shipped something else there. */
  async #ship(
    repository: Repository,
    location: ShippingPosition,
    { from, shippedMs }: Pick<ShippedPiece, 'from' | 'shippedMs'>,
    bytes: Uint8Array,
  ): Promise<boolean> {
    const { log } = this.#parts;
    const manifestId = location.manifest.id;
    const piece: ShippedPiece = {
      manifestId,
      ...(from !== location.position && { previousEnd: location.position }),
      from,
      to: from + bytes.length,
      shippedMs,
      ...(this.#records.read(bytes, from).marks.length > 0 && { hasMarks: true }),
    };
    const outcome = await repository.ship(piece, bytes).catch((error: unknown) => {
      if (isSkuaError(error, 'outcome_unknown')) return 'unknown' as const;
      throw error;
    });
    let there: ShippedPiece | undefined = piece;
    if (outcome !== 'created') {
      there = (await repository.shipped(manifestId)).find((other) => other.from === from);
      // A call without a known outcome that had no effect: the next round tries again.
      if (there === undefined)
        throw new SkuaError(
          'outcome_unknown',
          `It is not known whether the log from ${from} on was shipped; it is shipped again.`,
          { position: from },
        );
      if (!(await isOurs(log, repository, there))) return false;
    }
    location.position = there.to;
    location.shippedMs = there.shippedMs;
    location.pieces++;
    return true;
  }
}

/** Time of the last record of whole writes. */
function lastTimeIn(bytes: Uint8Array, from: number): number {
  const walk = new RecordWalk(from);
  walk.push(bytes, () => true);
  return walk.timeMs;
}

/** Bytes of log that are compared with what is in the repository when the shipper takes its place there. */
const COMPARED_BYTES = 65_536;

/** Where the shipper stands: behind the last piece after its base. */
interface ShippingPosition {
  readonly manifest: Manifest;
  /** Manifests that are known to be the base itself, or no newer ones of this node. */
  readonly seen: Set<string>;
  position: number;
  /** When the log was shipped up to there; when the base was made, where nothing was. */
  shippedMs: number;
  pieces: number;
}

/** A node and its log. */
interface ShippingOwner {
  readonly nodeId: string;
  readonly log: ShippableLog;
}

/**
 * The newest backup of the node and what was shipped after it, as far as it is the log that is here; otherwise why
 * nothing can be shipped behind it.
 */
async function findPlace(
  { nodeId, log }: ShippingOwner,
  repository: Repository,
): Promise<ShippingPosition | 'none' | 'damaged' | 'other'> {
  const manifest = await repository.newestOf(nodeId);
  if (manifest === null) return 'none';
  let isDamaged = false;
  const pieces = await repository.shipped(manifest.id, () => {
    isDamaged = true;
  });
  if (isDamaged) return 'damaged';
  const last = pieces.at(-1);
  const position = last?.to ?? logEndOf(manifest);
  if (!reaches(log, position)) return 'other';
  if (last === undefined ? !(await endsAlike(log, repository, manifest)) : !(await isOurs(log, repository, last)))
    return 'other';
  return {
    manifest,
    seen: new Set([manifest.id]),
    position,
    shippedMs: last?.shippedMs ?? madeMsOf(manifest),
    pieces: pieces.length,
  };
}

/** Backups are also made from outside, and removed: what is shipped has to follow the newest that is there. */
async function isSuperseded(
  { nodeId }: ShippingOwner,
  repository: Repository,
  { manifest, seen }: ShippingPosition,
): Promise<boolean> {
  const ids = await repository.manifestsFrom(manifest);
  if (ids[0] !== manifest.id) return true;
  const unseen = ids.filter((id) => !seen.has(id));
  if (unseen.length === 0) return false;
  const newest = await repository.newestOf(nodeId);
  // Those of other nodes, which were listed before, are not asked for again.
  for (const id of unseen) seen.add(id);
  return newest?.id !== manifest.id;
}

/** The same bytes are as good, whichever process shipped them: this process when a reply was lost, or one before it. */
async function isOurs(log: ShippableLog, repository: Repository, piece: ShippedPiece): Promise<boolean> {
  // What a scavenge has rewritten can't be compared any more; no log is ever cut as far back.
  if (log.isRewritten(Math.floor(piece.from / log.chunkSizeBytes))) return true;
  if (!reaches(log, piece.to)) return false;
  const there = await repository.readShipped(piece);
  const here = await log.read(piece.from, piece.to);
  return there.length === here.length && equalBytes(there, 0, here, 0, here.length);
}

async function endsAlike(log: ShippableLog, repository: Repository, { tail }: Manifest): Promise<boolean> {
  const last = tail?.segments.at(-1);
  if (last === undefined || log.isRewritten(tail!.number)) return true;
  const length = Math.min(COMPARED_BYTES, last.sizeBytes);
  const there = await gather(repository.readBlob(last, { from: last.sizeBytes - length, length }), length);
  return equalBytes(there, 0, await log.read(last.to - length, last.to), 0, length);
}

/**
 * The log has data up to this position, as far as can be told: of a chunk that a scavenge has rewritten, only what it
 * has left is known.
 */
function reaches(log: ShippableLog, position: number): boolean {
  const number = Math.floor(position / log.chunkSizeBytes);
  return position <= log.end && (log.isRewritten(number) || position <= log.dataEnd(number));
}
