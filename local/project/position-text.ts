import { SkuaError } from '../../core/base/errors.ts';
import type { Checkpoint } from '../event-store/api.ts';

/** Where a projection is, as its row has it. */
export interface Place {
  /** Null at the beginning. */
  readonly checkpoint: Checkpoint | null;
  /** Of the last event that was handled, where one stream is read. */
  readonly version?: number;
}

/** The text of a row, which is its version, too: one that comes later is another. */
export function rowText({ checkpoint, version }: Place): string {
  return JSON.stringify({ checkpoint, version });
}

/** Throws `checkpoint_unknown` for what is no such text. */
export function parsePlace(name: string, text: string): Place {
  try {
    const { checkpoint, version } = JSON.parse(text) as Partial<Place>;
    if (typeof checkpoint === 'object' && (version === undefined || Number.isSafeInteger(version)))
      return { checkpoint, ...(version !== undefined && { version }) };
  } catch {
    // It is refused below.
  }
  throw new SkuaError(
    'checkpoint_unknown',
    `What is stored of the place of the projection ${name} is none: something else has written it. Give the projection another name, and the model is built anew.`,
    { position: { commit: 0, prepare: 0 }, why: 'it is no checkpoint' },
  );
}
