import { isSkuaError, SkuaError } from '../../errors.ts';
import { listKind, type KeyKind } from '../../ports/object-kinds.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { encodeText } from '../../text.ts';

/**
 * In which format commits are written. Objects `format/<6 digits>` are created and never changed or removed; the highest number counts, and 1 where there is
 * none. Members of two versions so run side by side: the older one goes on until all of them understand the newer format, and the leader then
 * raises it. Who does not understand it refuses to take part, and changes nothing.
 */
export const FORMATS_PREFIX = 'format/';
const FORMATS: KeyKind = { prefix: FORMATS_PREFIX, rest: /^\d{6}$/ };
const DIGITS = 6;
/** The one that was written before there were numbers. */
const FIRST = 1;

export class Formats {
  readonly #objects: ObjectStore;
  readonly #max: number;
  #present = FIRST;

  /** `max` is the newest format that this program understands. */
  constructor(objects: ObjectStore, max: number) {
    this.#objects = objects;
    this.#max = max;
  }

  /** As of the last look. */
  get present(): number { return this.#present; }

  /** Looks which one is in force: one LIST. Throws `format_too_new`. */
  async look(signal?: AbortSignal): Promise<number> {
    let newest = FIRST;
    for await (const { key } of listKind(this.#objects, FORMATS, signal === undefined ? {} : { signal })) {
      newest = Math.max(newest, Number(key.slice(FORMATS_PREFIX.length)));
    }
    if (newest > this.#max) {
      throw new SkuaError('format_too_new', `Commits under ${this.#objects.place} are written in format ${newest}, and this version understands formats up to ${this.#max}: install the version that the other members run. Nothing was changed.`, { format: newest, formatMax: this.#max });
    }
    this.#present = newest;
    return newest;
  }

  /**
   * Puts the newest format in force that all of these understand, this program included; `announced` are the newest formats of all members that are known,
   * read after each of them had the chance to write what it understands. Returns the one in force then.
   */
  async raise(announced: Iterable<number>): Promise<number> {
    let common = this.#max;
    for (const formatMax of announced) common = Math.min(common, formatMax);
    if (common <= this.#present) return this.#present;
    try {
      await this.#objects.create(FORMATS_PREFIX + String(common).padStart(DIGITS, '0'), encodeText(`${JSON.stringify({ format: common })}\n`));
    } catch (error) {
      if (!isSkuaError(error, 'outcome_unknown')) throw error;
      // It is looked at again anyway.
    }
    return this.look();
  }
}
