import { type PrepareFields, type RecordFrame, streamOf } from '../../log/format/records.ts';
import { isViewName } from '../../streams/format/names.ts';
import type { VerifyRun } from './verify-run.ts';

/** Names that are told of. */
const NAMES_MAX = 100;
const DOLLAR = 36;
const DASH = 45;
const DASH_AT = 3;

/** Names streams in the log that have the name of a view: no read of such a stream shows them. */
export class ShadowedStreams {
  readonly #run: VerifyRun;
  readonly #names = new Set<string>();

  constructor(run: VerifyRun) {
    this.#run = run;
  }

  /** Looks at an event that has been parsed. */
  look(frame: RecordFrame, fields: PrepareFields, file: string): void {
    const { bytes } = frame;
    const { streamAt, streamLength } = fields;
    if (streamLength <= DASH_AT || bytes[streamAt] !== DOLLAR || bytes[streamAt + DASH_AT] !== DASH) return;
    if (this.#names.size >= NAMES_MAX) return;
    const name = streamOf(frame, fields);
    if (!isViewName(name) || this.#names.has(name)) return;
    this.#names.add(name);
    this.#run.add(
      'warning',
      'stream_shadowed',
      file,
      null,
      `The log has a stream ${name}, as a projection wrote it: reads show the view of that name instead, and what is ` +
        `in the log only in $all. ${this.#names.size < NAMES_MAX ? 'Nothing has to be done.' : 'There may be more.'}`,
    );
  }
}
