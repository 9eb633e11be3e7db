import type { StoredEvent } from '../../../core/streams/api.ts';
import type { Timeline } from '../auto-scavenge/timeline.ts';
import { ConditionJudge } from './conditions.ts';
import { TrueLog, type TrueRecord } from './truth.ts';

/** Lines of the history that are kept. */
const HISTORY_MAX = 20_000;

const COUNTED = [
  'commits',
  'ghosts',
  'acknowledged',
  'repeats',
  'refused',
  'unknown',
  'failed',
  'reads',
  'messages',
  'forwarded',
  'fenced',
  'anew',
  'epochs',
  'holds',
  'crashes',
  'powerLosses',
  'freezes',
  'cuts',
  'fullDisks',
  'failedSyncs',
  'openings',
  'restored',
  'emptied',
  'compactions',
  'sharedScavenges',
  'scavenges',
  'scavenged',
  'pushed',
  'diverged',
  'late',
  'cutBack',
  'expired',
  'hungUp',
  'redacted',
  'blackened',
  'conditional',
  'conditionFailed',
] as const;
export type Counted = (typeof COUNTED)[number];

/** Knows the whole log, and compares with it all that members have on their disks and tell their clients. */
export class Judge {
  readonly problems: string[] = [];
  readonly counts = Object.fromEntries(COUNTED.map((name) => [name, 0])) as Record<Counted, number>;
  readonly truth = new TrueLog();
  readonly conditions = new ConditionJudge(this);
  readonly history: string[] = [];
  /** Members that know of a log that is gone, and must not write to the one in its place. */
  readonly silenced = new Set<string>();
  readonly #timeline: Timeline;
  readonly #refused = new Set<string>();
  /** Exact versions that writes expect, by the id of their first event. */
  readonly #expected = new Map<string, number>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  count(name: Counted): void {
    this.counts[name]++;
  }

  note(text: string): void {
    if (this.history.length < HISTORY_MAX) this.history.push(`${String(this.#timeline.now).padStart(7)}  ${text}`);
  }

  problem(text: string): void {
    this.note(`WRONG: ${text}`);
    this.problems.push(`at ${this.#timeline.now} ms: ${text}`);
  }

  /** An object was created in the bucket. */
  created(who: string, key: string, bytes: Uint8Array): void {
    const { truth } = this;
    const before = truth.records.length;
    if (!truth.created(key, bytes, this.#timeline.now, (text) => this.problem(text))) {
      if (key.startsWith('log/')) this.count('ghosts');
      return;
    }
    this.count('commits');
    if (this.silenced.has(who.split('.')[0]!))
      this.problem(`${who} writes to a log that was put back to before what it knows: ${key}`);
    const { number, start, end, endsChunk } = truth.commits.at(-1)!;
    const added = truth.records.slice(before);
    this.note(
      `${who} commits ${number}, ${start} to ${end}${endsChunk ? ', which ends the chunk' : ''}: ${added.map(textOf).join(', ')}`,
    );
    for (const record of added) {
      const { id, prepare } = record;
      this.conditions.committed(record);
      if (this.#refused.has(id)) this.problem(`the event ${id} was refused and is in the log`);
      const expected = this.#expected.get(id);
      if (expected !== undefined && prepare!.number !== expected + 1)
        this.problem(`event ${prepare!.number} of ${prepare!.stream} came by a write that expected ${expected}`);
    }
  }

  expects(id: string, version: number): void {
    this.#expected.set(id, version);
  }

  /** Somebody was told that the event is in the log with this number. */
  acknowledged(stream: string, id: string, number: number): void {
    const record = this.truth.byId.get(id);
    if (record === undefined)
      this.problem(`event ${number} of ${stream} (${id}) was acknowledged and is not in the log`);
    else if (!this.truth.holds(stream, number, id))
      this.problem(`the event ${id} was acknowledged as ${number} of ${stream} and is ${textOf(record)}`);
  }

  /** Somebody was told that the event was not written and will not be. */
  refused(id: string): void {
    if (this.truth.byId.has(id)) this.problem(`the event ${id} was refused and is in the log`);
    this.#refused.add(id);
  }

  /** Last event number of a stream when the log had this many commits. */
  lastAt(stream: string, commits: number): number {
    return this.truth.streams.get(stream)?.findLast(({ commit }) => commit <= commits)?.prepare!.number ?? -1;
  }

  /** A member that shows the log up to `end` shows nothing of an event that has a mark before, and all of any other. */
  hides(who: string, end: number, { position, stream, number, data, isRedacted }: StoredEvent): void {
    const markedAt = this.truth.marks.get(position);
    const what = `${who} shows event ${number} of ${stream} at ${position}`;
    if (markedAt === undefined ? isRedacted : markedAt < end && !(isRedacted && data.length === 0))
      this.problem(
        `${what} ${isRedacted ? 'as redacted' : 'as it was'}, with ${data.length} bytes, and its mark is at ${markedAt}`,
      );
    if (isRedacted) this.count('redacted');
  }

  /**
   * A member shows events of `$all`: each must be in the log, and what is missing between them must be what a scavenge
   * may have removed.
   */
  shows(who: string, from: number, to: number, events: readonly StoredEvent[]): void {
    const { truth } = this;
    const shown = new Set<number>();
    let last = from - 1;
    for (const event of events) {
      const { position, id, stream, number } = event;
      this.hides(who, to, event);
      if (position <= last) this.problem(`${who} shows the event at ${position} behind ${last}`);
      last = position;
      shown.add(position);
      if (truth.byPosition.get(position)?.id !== id)
        this.problem(
          `${who} shows ${number} of ${stream} at ${position}, where the log has ${nameOf(truth.byPosition.get(position))}`,
        );
    }
    const doomed = truth.doomed();
    const emptied = truth.emptied();
    for (const record of truth.records) {
      if (
        record.position < from ||
        record.position >= to ||
        shown.has(record.position) ||
        record.prepare === null ||
        record.prepare.stream === '$epoch-information'
      )
        continue;
      if (!doomed.has(record.position) && !emptied.has(record.position))
        this.problem(`${who} does not show ${textOf(record)}, which no scavenge may remove`);
    }
  }
}

export function textOf({ position, prepare }: TrueRecord): string {
  return prepare === null
    ? `an epoch@${position}`
    : `${prepare.stream}#${prepare.number > 1e9 ? 'tombstone' : prepare.number}@${position}`;
}

function nameOf(record: TrueRecord | undefined): string {
  return record === undefined ? 'nothing' : textOf(record);
}
