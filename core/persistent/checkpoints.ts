import { isSkuaError, SkuaError } from '../base/errors.ts';
import { ANY } from '../streams/api.ts';
import type { StoredEvent } from '../streams/api.ts';
import { ALL_STREAM, checkpointStreamOf } from './api.ts';
import type { Standing } from './ledger.ts';
import { ABSENT, ownEvent } from './group-parts.ts';
import type { EngineParts, GroupParts } from './group-parts.ts';
import { isAfter, parsePosition, positionText } from './positions.ts';
import type { Position } from './positions.ts';
import {
  CHECKPOINT_TYPE,
  CHECKPOINT_TYPES,
  decodeCheckpoint,
  decodeInitialMark,
  encodeCheckpoint,
  encodeInitialMark,
} from './stored-forms.ts';
import type { KeptGroup } from './stored-forms.ts';

export interface LoadedCheckpoint {
  readonly place: Position;
  /** Nothing has been done yet: this checkpoint holds where a group from the end begins. */
  readonly isInitial: boolean;
}

/** The last checkpoint of a group; null where there is none that counts. */
export async function loadCheckpoint(
  { store, log }: Pick<EngineParts, 'store' | 'log'>,
  { stream, group, startPosition }: KeptGroup,
): Promise<LoadedCheckpoint | null> {
  const name = checkpointStreamOf(stream, group);
  let event: StoredEvent;
  try {
    event = await store.readEvent(name, 'last');
  } catch (error) {
    if (error instanceof SkuaError && ABSENT.has(error.code)) return null;
    throw error;
  }
  const text = CHECKPOINT_TYPES.has(event.type) ? decodeCheckpoint(event.data) : null;
  const position = text === null ? null : parsePosition(text, stream === ALL_STREAM);
  if (position === null) {
    log.warn('the checkpoint of a persistent subscription is invalid: it starts at its configured position', {
      stream: name,
      number: event.number,
    });
    return null;
  }
  const mark = decodeInitialMark(event.metadata);
  return mark !== null && mark !== startPosition ? null : { place: position, isInitial: mark !== null };
}

/** Says where a group begins that takes what is written from now on. */
export async function writeInitialCheckpoint(
  { writes, ids }: Pick<EngineParts, 'writes' | 'ids'>,
  { stream, group, startPosition }: KeptGroup,
  position: Position,
): Promise<void> {
  const data = encodeCheckpoint(positionText(position, stream === ALL_STREAM));
  await writes.append(checkpointStreamOf(stream, group), ANY, [
    ownEvent({ ids }, CHECKPOINT_TYPE, true, data, encodeInitialMark(startPosition)),
  ]);
}

/**
 * Writes the checkpoints of one group, one at a time. What is written was done before, so a restart repeats what came
 * after the last one that was written, and a write that fails, or whose outcome is unknown, costs no more than that.
 */
export class CheckpointWriter {
  readonly #parts: GroupParts;
  readonly #kept: KeptGroup;
  readonly #isAll: boolean;
  /** Null before the first. */
  last: Position | null = null;
  #lastOrder = -1;
  #writtenAtMs: number;
  #retryAtMs = -Infinity;
  #writing: Promise<void> | null = null;
  #isStopped = false;

  constructor(parts: GroupParts, kept: KeptGroup) {
    this.#parts = parts;
    this.#kept = kept;
    this.#isAll = kept.stream === ALL_STREAM;
    this.#writtenAtMs = parts.clock.monotonicMs();
  }

  /** Where the group goes on. `order` is that of the last message before. */
  begin(loaded: LoadedCheckpoint | null, order: number): void {
    this.last = loaded === null || loaded.isInitial ? null : loaded.place;
    this.#lastOrder = order;
  }

  /** Whether time alone makes a checkpoint due. */
  isBehind(order: number): boolean {
    return order - this.#lastOrder >= Math.max(1, this.#kept.settings.minCheckpointCount);
  }

  /** Messages have been answered, or time has passed (`isTimed`). */
  consider(standing: Standing, isTimed: boolean): void {
    const { settings } = this.#kept;
    const done = standing.order - this.#lastOrder;
    if (done <= 0 || this.#writing !== null || this.#isStopped) return;
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs < this.#retryAtMs) return;
    const isDue =
      done >= Math.max(1, settings.maxCheckpointCount) ||
      (isTimed && done >= settings.minCheckpointCount && nowMs - this.#writtenAtMs >= settings.checkpointAfterMs);
    if (isDue) this.#begin(standing);
  }

  /** The group has passed so much without a wanted event that it is worth a checkpoint. */
  passed(standing: Standing): void {
    const from = this.last?.commit ?? 0;
    if (
      standing.place.commit - from < this.#parts.limits.scanCheckpointBytes ||
      this.#writing !== null ||
      this.#isStopped ||
      this.#parts.clock.monotonicMs() < this.#retryAtMs
    )
      return;
    this.#begin(standing);
  }

  /** Writes what is left, waits for it, and writes nothing afterwards. Without a standing only waits. */
  async stop(standing: Standing | null): Promise<void> {
    this.#isStopped = true;
    await this.#writing;
    if (standing !== null && standing.order > this.#lastOrder) await this.#write(standing);
  }

  #begin(standing: Standing): void {
    this.#writing = this.#write(standing).finally(() => {
      this.#writing = null;
    });
  }

  /** Never rejects. */
  async #write({ place, order }: Standing): Promise<void> {
    const { writes, clock, log, limits } = this.#parts;
    const { stream, group } = this.#kept;
    // A group never goes back: a checkpoint before the last one would repeat more than it has to.
    if (this.last !== null && !isAfter(place.commit, place.prepare, this.last)) {
      this.#lastOrder = Math.max(this.#lastOrder, order);
      return;
    }
    try {
      await writes.append(checkpointStreamOf(stream, group), ANY, [
        ownEvent(this.#parts, CHECKPOINT_TYPE, true, encodeCheckpoint(positionText(place, this.#isAll))),
      ]);
      this.last = place;
      this.#lastOrder = order;
      this.#writtenAtMs = clock.monotonicMs();
    } catch (error) {
      this.#retryAtMs = clock.monotonicMs() + limits.retryMs;
      if (!isSkuaError(error, 'not_leader'))
        log.warn('the checkpoint of a persistent subscription could not be written', { stream, group, error });
    }
  }
}
