import { isSkuaError, type SkuaError } from '../../errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { nodeKey } from '../../ports/nodes.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import type { GossipEntry } from '../../ports/peers.ts';
import { sameNode } from '../api.ts';
import { Alarm } from './alarm.ts';
import { Formats } from './formats.ts';
import type { MemberTable } from './gossip.ts';
import { entryOf, type NodeNote, Registry } from './registry.ts';

/** How often the objects are looked at while no leader is heard, or this member is refused. */
const URGENT_LOOK_MS = 5_000;

export interface CareParts {
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly table: MemberTable;
  readonly self: () => GossipEntry;
  readonly isLeading: () => boolean;
  readonly isUrgent: () => boolean;
  readonly removeAfterMs: number;
  readonly formatMax: number;
  readonly lookMs: number;
  readonly onLook: () => void;
  /** The format of commits is too new for this program. */
  readonly onRefused: (error: SkuaError) => void;
}

/** What members keep in the bucket about themselves: their node objects and the format of commits. Two LISTs a look, mostly. */
export class Care {
  readonly #parts: CareParts;
  readonly #registry: Registry;
  readonly #formats: Formats;
  readonly #alarm: Alarm;
  /** Priority under which the own object was written. */
  #written: number | null = null;

  constructor(parts: CareParts) {
    this.#parts = parts;
    this.#registry = new Registry(parts.objects, parts.log);
    this.#formats = new Formats(parts.objects, parts.formatMax);
    this.#alarm = new Alarm(parts.clock);
  }

  get format(): number { return this.#formats.present; }

  /**
   * The first look. `onOther` is asked when the object of this address is that of another instance that was not stopped, and throws when it is alive.
   * The format is looked at before anything is written, so that a version that is too old changes nothing, and once more behind it: whoever raises it
   * looks at the objects first, so either sees the other.
   */
  async start(onOther: () => Promise<void>): Promise<void> {
    await this.#formats.look();
    const self = this.#parts.self();
    const note = await this.#registry.read(self.node);
    if (note !== null && note.instanceId !== self.instanceId && !note.isStopped) await onOther();
    await this.#write(false);
    await this.#formats.look();
    this.#take(await this.#registry.list());
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, isUrgent, log, lookMs } = this.#parts;
    let nextMs = clock.monotonicMs() + lookMs;
    while (!signal.aborted) {
      await this.#alarm.sleep(URGENT_LOOK_MS, signal);
      if (signal.aborted) return;
      if (clock.monotonicMs() < nextMs && !isUrgent() && this.#written === this.#parts.self().priority) continue;
      nextMs = clock.monotonicMs() + lookMs;
      await this.#look(signal).catch((error: unknown) => {
        if (isSkuaError(error, 'format_too_new')) this.#parts.onRefused(error);
        else if (!signal.aborted) log.warn('the objects of the members could not be looked at, which is tried again', { error: String(error) });
      });
    }
  }

  /** What the own object says has changed. */
  wake(): void {
    this.#alarm.ring();
  }

  /** Leaves word that this member was stopped, where the bucket takes it in time. */
  async stop(waitMs: number): Promise<void> {
    const { clock, log } = this.#parts;
    const ending = new AbortController();
    const written = this.#write(true, ending.signal).catch((error: unknown) => { log.warn('it could not be noted that this member stopped', { error: String(error) }); });
    const limit = new AbortController();
    await Promise.race([written, clock.sleep(waitMs, limit.signal)]);
    ending.abort();
    limit.abort();
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { self, isLeading, onLook } = this.#parts;
    await this.#formats.look(signal);
    const notes = await this.#registry.list(signal);
    const { node, instanceId, priority } = self();
    const own = notes.find((note) => sameNode(note.node, node));
    if (own?.instanceId !== instanceId || own.priority !== priority || own.isStopped) await this.#write(false, signal);
    this.#take(notes);
    if (isLeading()) await this.#tend(notes);
    else this.#forget(notes);
    onLook();
  }

  #take(notes: readonly NodeNote[]): void {
    for (const note of notes) this.#parts.table.merge(entryOf(note), 'object');
  }

  /** The leader has removed the object of a member that nobody hears of. */
  #forget(notes: readonly NodeNote[]): void {
    const { table, removeAfterMs } = this.#parts;
    for (const { entry } of table.unseenFor(removeAfterMs)) if (!notes.some(({ node }) => sameNode(node, entry.node))) table.remove(entry.node);
  }

  /** What the leader does for all: it removes members of which nobody has heard for long, and raises the format when all understand the next one. */
  async #tend(notes: readonly NodeNote[]): Promise<void> {
    const { table, removeAfterMs, log } = this.#parts;
    const gone = new Set<string>();
    for (const { entry } of table.unseenFor(removeAfterMs)) {
      await this.#registry.remove(entry.node);
      table.remove(entry.node);
      gone.add(nodeKey(entry.node));
      log.info('a member that nobody has heard of for long is forgotten', { member: nodeKey(entry.node) });
    }
    const before = this.#formats.present;
    const announced = [...table.records().map(({ entry }) => entry.formatMax), ...notes.filter(({ node }) => !gone.has(nodeKey(node))).map(({ formatMax }) => formatMax)];
    const format = await this.#formats.raise(announced);
    if (format !== before) log.info('commits are written in a newer format: older versions take no part any more', { format });
  }

  async #write(isStopped: boolean, signal?: AbortSignal): Promise<void> {
    const { node, instanceId, priority, isReadOnlyReplica, version, formatMax } = this.#parts.self();
    await this.#registry.write({ node, instanceId, priority, isReadOnlyReplica, version, formatMax, writtenMs: this.#parts.clock.nowMs(), isStopped }, signal);
    this.#written = priority;
  }
}
