import { guidToText } from '../../../core/base/guid.ts';
import { parsePrepare, PREPARE, PrepareFields, RecordFrame, streamOf } from '../../../core/log/format/records.ts';
import { decodeCommitObject } from '../../../core/shared-log/format/commit-object.ts';
import { commitNumberOf } from '../../../core/shared-log/format/object-keys.ts';
import { MemoryObjects } from '../../support/memory-objects.ts';
import { eachRecord } from '../../../core/streams/committed/committed.ts';
import type { StoredEvent } from '../../../core/streams/api.ts';
import { nodeDigests } from '../../../infra/node-digests.ts';
import type { Timeline } from '../auto-scavenge/timeline.ts';

export interface TrueEvent {
  readonly stream: string;
  readonly number: number;
  readonly id: string;
  readonly position: number;
  readonly committedMs: number;
}

/**
 * Sees the log as the store has it: every first object at a number is a commit, and what is created at a number that
 * was committed before is none, whoever believes it. Everything that processes were told is compared with that.
 */
export class Judge {
  readonly problems: string[] = [];
  readonly counts: Record<string, number> = {
    commits: 0,
    ghosts: 0,
    acknowledged: 0,
    repeats: 0,
    refused: 0,
    unknown: 0,
    failed: 0,
    reads: 0,
    compactions: 0,
    queries: 0,
    removed: 0,
    freezes: 0,
    crashes: 0,
    lateTakeovers: 0,
  };
  readonly log: TrueEvent[] = [];
  readonly byId = new Map<string, TrueEvent>();
  readonly streams = new Map<string, TrueEvent[]>();
  readonly #timeline: Timeline;
  readonly #refused = new Set<string>();
  /** Last number of each stream that somebody was told is in the log. */
  readonly #acknowledged = new Map<string, number>();
  #lastCommit = 0;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  problem(text: string): void {
    this.problems.push(`at ${this.#timeline.now} ms: ${text}`);
  }

  /** An object was created in the store. */
  created(key: string, bytes: Uint8Array): void {
    const number = commitNumberOf(key);
    if (number === null) return;
    if (number <= this.#lastCommit) {
      this.counts['ghosts']!++;
      return;
    }
    if (number !== this.#lastCommit + 1)
      this.problem(`commit ${number} was created though the last one is ${this.#lastCommit}`);
    this.#lastCommit = number;
    this.counts['commits']!++;
    const { commit } = decodeCommitObject(key, number, bytes, nodeDigests);
    const frame = new RecordFrame();
    const f = new PrepareFields();
    eachRecord(commit.records, commit.start, frame, () => {
      if (frame.type !== PREPARE) return;
      parsePrepare(frame, f);
      this.#committed({
        stream: streamOf(frame, f),
        number: f.eventNumber,
        id: guidToText(frame.bytes, f.eventIdAt),
        position: frame.position,
        committedMs: this.#timeline.now,
      });
    });
  }

  #committed(event: TrueEvent): void {
    const { stream, number, id } = event;
    let events = this.streams.get(stream);
    if (events === undefined) this.streams.set(stream, (events = []));
    if (number !== events.length) this.problem(`event ${number} of ${stream} follows event ${events.length - 1}`);
    if (this.byId.has(id)) this.problem(`the event ${id} is in the log twice`);
    if (this.#refused.has(id)) this.problem(`the event ${id} was refused and is in the log`);
    events.push(event);
    this.byId.set(id, event);
    this.log.push(event);
  }

  acknowledged(stream: string, id: string, number: number): void {
    const event = this.byId.get(id);
    if (event === undefined) this.problem(`event ${number} of ${stream} was acknowledged and is not in the log`);
    else if (event.number !== number || event.stream !== stream)
      this.problem(
        `the event ${id} was acknowledged as ${number} of ${stream} and is ${event.number} of ${event.stream}`,
      );
    this.#acknowledged.set(stream, Math.max(number, this.#acknowledged.get(stream) ?? -1));
  }

  /** Somebody was told that the event was not written and will not be. */
  refused(id: string): void {
    if (this.byId.has(id)) this.problem(`the event ${id} was refused and is in the log`);
    this.#refused.add(id);
  }

  /** Last event number of a stream at a time. */
  lastAt(stream: string, atMs: number): number {
    return this.streams.get(stream)?.findLast(({ committedMs }) => committedMs <= atMs)?.number ?? -1;
  }

  acknowledgedLast(stream: string): number {
    return this.#acknowledged.get(stream) ?? -1;
  }

  /** A read of the whole stream that began when `least` was acknowledged. */
  read(stream: string, events: readonly StoredEvent[], least: number): void {
    const truth = this.streams.get(stream) ?? [];
    if (events.length <= least)
      this.problem(`a reader of ${stream} saw ${events.length} events when ${least} was acknowledged`);
    events.forEach((event, i) => {
      if (event.number !== i || event.id !== truth[i]?.id)
        this.problem(`a reader of ${stream} saw ${event.id} as event ${event.number} where ${truth[i]?.id} is`);
    });
  }

  readAll(who: string, events: readonly StoredEvent[]): void {
    if (events.length !== this.log.length) this.problem(`${who} sees ${events.length} of ${this.log.length} events`);
    events.forEach((event, i) => {
      if (event.id !== this.log[i]?.id || event.position !== this.log[i]?.position)
        this.problem(
          `${who} sees ${event.id} at ${event.position} in place ${i} of the log, where ${this.log[i]?.id} is`,
        );
    });
  }
}

/** The store, watched. */
export class JudgedObjects extends MemoryObjects {
  readonly #judge: Judge;

  constructor(judge: Judge, clock: { nowMs(): number }) {
    super({ clock });
    this.#judge = judge;
  }

  override async create(key: string, bytes: Uint8Array): Promise<'created' | 'exists'> {
    const reply = await super.create(key, bytes);
    if (reply === 'created') this.#judge.created(key, bytes);
    return reply;
  }
}
