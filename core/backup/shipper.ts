import { equalBytes } from '../bytes.ts';
import { isSkuaError, SkuaError } from '../errors.ts';
import type { Clock } from '../ports/clock.ts';
import { BytePace } from './byte-pace.ts';
import { gather } from './create-known.ts';
import { logEndOf } from './manifests.ts';
import type { Manifest, ShippedPiece } from './manifest.ts';
import type { Repository } from './repository-api.ts';
import { nextPiece } from './shipper-log.ts';
import type { ShippableLog } from './shipper-log.ts';

/** After so many pieces a new base is asked for, and after so many more nothing is shipped without one. */
export const PIECES_MAX = 512;
const PIECES_HARD_MAX = 4_096;
/** A base that was asked for and did not come is asked for again after this many milliseconds. */
const ASK_AGAIN_MS = 600_000;
/** First and longest pause after an error of the store, in milliseconds. */
const BACK_OFF_MS_MIN = 1_000;
const BACK_OFF_MS_MAX = 60_000;
/** Bytes of log that are compared with what is in the repository when the shipper takes its place there. */
const COMPARED_BYTES = 65_536;

export type BaseReason =
  /** There is no backup of this node yet. */
  | 'none'
  /** The log goes on in another chunk. */
  | 'chunk'
  /** A chunk file of the backup was replaced. */
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

/** Where the shipper stands: behind the last piece after its base. */
interface Place {
  readonly manifest: Manifest;
  readonly chunkNumber: number;
  position: number;
  pieces: number;
}

/**
 * Ships the end of the log after the newest backup of the node, piece by piece. It holds nothing that it could not read from the
 * repository again: `tick` may be called at any time, one call at a time, by whichever process runs the node now. Pieces are
 * created under a key that only one writer gets, and the place moves on only behind one that is there.
 */
export class Shipper {
  readonly #parts: ShipperParts;
  readonly #pace: BytePace;
  readonly #startedMs: number;
  #place: Place | null = null;
  /** Up to here the log was in the repository when that was last known. */
  #shippedTo = 0;
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
    return Math.max(0, this.#parts.log.end - this.#shippedTo);
  }

  /** How long ago everything was in the repository, in milliseconds; 0 when it is. */
  get lagMs(): number {
    return this.unshippedBytes === 0 ? 0 : Math.max(0, this.#parts.clock.nowMs() - (this.#completeMs ?? this.#startedMs));
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
        this.#shippedTo = 0;
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
    const { log, repository: open, signal } = this.#parts;
    const repository = await open();
    if (this.#place === null) {
      const found = await this.#findPlace(repository);
      if (typeof found === 'string') return found;
      this.#place = found;
      this.#shippedTo = found.position;
    }
    const place = this.#place;
    for (;;) {
      if (log.end < place.position) return 'other';
      const limit = Math.min(log.end, log.dataEnd(place.chunkNumber));
      if (place.position >= limit || place.pieces >= PIECES_HARD_MAX) break;
      if (signal?.aborted === true) return null;
      const bytes = await nextPiece(log, place.position, limit);
      if (bytes === null) return 'large';
      await this.#pace.take(bytes.length);
      if (!(await this.#ship(repository, place, bytes))) return 'other';
      done.shippedBytes += bytes.length;
    }
    return this.#wantsBase(place);
  }

  #wantsBase({ manifest, chunkNumber, position, pieces }: Place): BaseReason | null {
    const { log } = this.#parts;
    if (log.end > position && log.end >= (chunkNumber + 1) * log.chunkSizeBytes) return 'chunk';
    const inForce = new Set(log.chunkNames());
    if (manifest.chunks.some(({ path }) => !inForce.has(path))) return 'scavenged';
    return pieces >= PIECES_MAX ? 'many' : null;
  }

  /** False when another process has shipped something else there. */
  async #ship(repository: Repository, place: Place, bytes: Uint8Array): Promise<boolean> {
    const piece: ShippedPiece = { manifestId: place.manifest.id, from: place.position, to: place.position + bytes.length, shippedMs: this.#parts.clock.nowMs() };
    const outcome = await repository.ship(piece, bytes).catch((error: unknown) => {
      if (isSkuaError(error, 'outcome_unknown')) return 'unknown' as const;
      throw error;
    });
    if (outcome !== 'created') {
      const there = (await repository.shipped(place.manifest.id)).find(({ from }) => from === piece.from);
      // A call without a known outcome that had no effect: the next round tries again.
      if (there === undefined) throw new SkuaError('outcome_unknown', `Whether log from ${piece.from} on was shipped is not known; it is shipped again.`, { position: piece.from });
      if (!(await this.#isOurs(repository, there))) return false;
      place.position = there.to;
    } else place.position = piece.to;
    place.pieces++;
    this.#shippedTo = place.position;
    return true;
  }

  /** The same bytes are as good, whoever shipped them: this process when a reply was lost, or one before it. */
  async #isOurs(repository: Repository, piece: ShippedPiece): Promise<boolean> {
    const { log } = this.#parts;
    if (piece.to > Math.min(log.end, log.dataEnd(Math.floor(piece.from / log.chunkSizeBytes)))) return false;
    const there = await repository.readShipped(piece);
    const here = await log.read(piece.from, piece.to);
    return there.length === here.length && equalBytes(there, 0, here, 0, here.length);
  }

  /** The newest backup of this node and what was shipped after it, as far as it is the log that is here. */
  async #findPlace(repository: Repository): Promise<Place | BaseReason> {
    const { nodeId, log } = this.#parts;
    const manifest = await repository.newestOf(nodeId);
    if (manifest === null) return 'none';
    let isDamaged = false;
    const pieces = await repository.shipped(manifest.id, () => { isDamaged = true; });
    if (isDamaged) return 'damaged';
    const logEnd = logEndOf(manifest);
    const last = pieces.at(-1);
    const position = last?.to ?? logEnd;
    const chunkNumber = manifest.tail?.number ?? Math.floor(logEnd / manifest.chunkSizeBytes);
    if (position > Math.min(log.end, log.dataEnd(chunkNumber))) return 'other';
    if (last === undefined ? !(await this.#endsAlike(repository, manifest)) : !(await this.#isOurs(repository, last))) return 'other';
    this.#completeMs ??= last?.shippedMs ?? manifest.createdMs;
    return { manifest, chunkNumber, position, pieces: pieces.length };
  }

  async #endsAlike(repository: Repository, { tail }: Manifest): Promise<boolean> {
    const last = tail?.segments.at(-1);
    if (last === undefined) return true;
    const length = Math.min(COMPARED_BYTES, last.sizeBytes);
    const there = await gather(repository.readBlob(last, { from: last.sizeBytes - length, length }), length);
    return equalBytes(there, 0, await this.#parts.log.read(last.to - length, last.to), 0, length);
  }
}
