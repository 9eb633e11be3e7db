import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { nodeKey } from '../../ports/nodes.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import type { GossipEntry } from '../../ports/peers.ts';
import { sameNode } from '../api.ts';
import { WakeableSleep } from './wakeable-sleep.ts';
import type { MemberTable } from './member-table.ts';
import { entryOf, type NodeNote, Registry } from './member-registry.ts';

/** How often the objects are looked at while no leader is heard, or this member is refused. */
const URGENT_LOOK_MS = 5_000;

export interface RegistryUpkeepParts {
  readonly objects: ObjectStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly table: MemberTable;
  readonly self: () => GossipEntry;
  readonly isLeading: () => boolean;
  readonly isUrgent: () => boolean;
  readonly removeAfterMs: number;
  readonly lookMs: number;
  readonly onLook: () => void;
}

/** What members keep in the bucket about themselves: their node objects. One LIST a look, mostly. */
export class RegistryUpkeep {
  readonly #parts: RegistryUpkeepParts;
  readonly #registry: Registry;
  readonly #alarm: WakeableSleep;
  /** Priority under which the own object was written. */
  #written: number | null = null;

  constructor(parts: RegistryUpkeepParts) {
    this.#parts = parts;
    this.#registry = new Registry(parts.objects, parts.log);
    this.#alarm = new WakeableSleep(parts.clock);
  }

  /**
   * The first look. `onOther` is asked when the object of this address is that of another instance that was not
   * stopped, and throws when it is alive.
   */
  async start(onOther: () => Promise<void>): Promise<void> {
    const self = this.#parts.self();
    const note = await this.#registry.read(self.node);
    if (note !== null && note.instanceId !== self.instanceId && !note.isStopped) await onOther();
    await this.#write(false);
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
        if (!signal.aborted)
          log.warn('the objects of the members could not be read; will retry', { error: String(error) });
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
    const written = this.#write(true, ending.signal).catch((error: unknown) => {
      log.warn('could not record that this member has stopped', { error: String(error) });
    });
    const limit = new AbortController();
    await Promise.race([written, clock.sleep(waitMs, limit.signal)]);
    ending.abort();
    limit.abort();
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { self, isLeading, onLook } = this.#parts;
    const notes = await this.#registry.list(signal);
    const { node, instanceId, priority } = self();
    const own = notes.find((note) => sameNode(note.node, node));
    if (own?.instanceId !== instanceId || own.priority !== priority || own.isStopped) await this.#write(false, signal);
    this.#take(notes);
    if (isLeading()) await this.#tend();
    else this.#forget(notes);
    onLook();
  }

  #take(notes: readonly NodeNote[]): void {
    for (const note of notes) this.#parts.table.merge(entryOf(note), 'object');
  }

  /** The leader has removed the object of a member that no member hears from. */
  #forget(notes: readonly NodeNote[]): void {
    const { table, removeAfterMs } = this.#parts;
    for (const { entry } of table.unseenFor(removeAfterMs))
      if (!notes.some(({ node }) => sameNode(node, entry.node))) table.remove(entry.node);
  }

  /** What the leader does for all: it removes members of which no member has heard for long. */
  async #tend(): Promise<void> {
    const { table, removeAfterMs, log } = this.#parts;
    for (const { entry } of table.unseenFor(removeAfterMs)) {
      await this.#registry.remove(entry.node);
      table.remove(entry.node);
      log.info('a member that has not been heard from for a long time is forgotten', { member: nodeKey(entry.node) });
    }
  }

  async #write(isStopped: boolean, signal?: AbortSignal): Promise<void> {
    const { node, instanceId, priority, isReadOnlyReplica, version } = this.#parts.self();
    await this.#registry.write(
      { node, instanceId, priority, isReadOnlyReplica, version, writtenMs: this.#parts.clock.nowMs(), isStopped },
      signal,
    );
    this.#written = priority;
  }
}
