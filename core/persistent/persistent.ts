import { isSkuaError, SkuaError } from '../base/errors.ts';
import { ANY } from '../streams/api.ts';
import { METADATA_TYPE, metastreamOf } from '../streams/format/names.ts';
import {
  ALL_STREAM,
  checkpointStreamOf,
  DEFAULT_SETTINGS,
  existsError,
  failedError,
  notFoundError,
  parkedStreamOf,
} from './api.ts';
import type {
  ConnectOptions,
  Delivery,
  GroupChange,
  GroupConsumer,
  GroupInfo,
  NackAction,
  NewGroup,
  PersistentSubscriptionsEngine,
  StartFrom,
} from './api.ts';
import { loadCheckpoint, writeInitialCheckpoint } from './checkpoints.ts';
import { Group } from './group.ts';
import { endOf } from './event-intake.ts';
import { DEFAULT_LIMITS, Held } from './group-limits.ts';
import type { EngineLimits } from './group-limits.ts';
import { ABSENT, ownEvent } from './group-parts.ts';
import type { EngineParts, GroupParts } from './group-parts.ts';
import { isEndText, startText } from './positions.ts';
import { filterOf } from './reader.ts';
import {
  CONFIG_METADATA,
  CONFIG_STREAM,
  CONFIG_TYPE,
  decodeConfig,
  encodeConfig,
  OLD_CONFIG_TYPE,
} from './stored-forms.ts';
import type { KeptGroup } from './stored-forms.ts';
import { encodeText } from '../base/text.ts';
import { checkGroup, checkStart } from './group-validation.ts';
import { afterDelay } from '../base/background.ts';

/** Creates the engine; it does nothing before `start`. */
export function createPersistentSubscriptions(parts: EngineParts): PersistentSubscriptionsEngine {
  return new Engine(parts);
}

type State = 'stopped' | 'loading' | 'failed' | 'running';

class Engine implements PersistentSubscriptionsEngine {
  readonly #parts: GroupParts;
  readonly #limits: EngineLimits;
  /** By `<stream>::<group>`, as their streams are named. In the order of the configuration. */
  #groups = new Map<string, Group>();
  #state: State = 'stopped';
  #stopping = new AbortController();
  #loading: Promise<void> = Promise.resolve();
  #ticking: Promise<void> = Promise.resolve();
  #isTicking = false;
  #hasWork = false;
  /** Changes of the configuration come one after the other. */
  #changes: Promise<unknown> = Promise.resolve();

  constructor(parts: EngineParts) {
    this.#limits = { ...DEFAULT_LIMITS, ...parts.limits };
    this.#parts = {
      ...parts,
      limits: this.#limits,
      held: new Held(),
      onWork: () => {
        this.#tick();
      },
    };
  }

  start(): void {
    if (this.#state !== 'stopped') return;
    this.#state = 'loading';
    const stopping = new AbortController();
    this.#stopping = stopping;
    // What an earlier time as the leader has left is over first.
    this.#loading = this.#load(stopping.signal, this.#changes);
  }

  async stop(): Promise<void> {
    this.#state = 'stopped';
    this.#stopping.abort();
    // Not what `start` loads meanwhile: that waits for this.
    const loading = this.#loading;
    await this.#change(() => this.#stopGroups(loading));
    await this.#ticking;
  }

  restart(): Promise<void> {
    return this.#change(async () => {
      this.#assertLeading();
      this.#state = 'loading';
      this.#stopping.abort();
      await this.#stopGroups(this.#loading);
      // The service may have been stopped meanwhile.
      if ((this.#state as State) !== 'loading') return;
      const stopping = new AbortController();
      this.#stopping = stopping;
      this.#loading = this.#load(stopping.signal, Promise.resolve());
      await this.#loading;
    });
  }

  async #stopGroups(loading: Promise<void>): Promise<void> {
    await loading;
    const groups = [...this.#groups.values()];
    this.#groups = new Map();
    await Promise.all(groups.map((group) => group.stop(true)));
  }

  /** Loads until it succeeds; resolves after the first attempt. Never rejects. */
  async #load(signal: AbortSignal, after: Promise<unknown>): Promise<void> {
    await after;
    if (signal.aborted) return;
    try {
      const kept = await this.#readConfig();
      if (signal.aborted) return;
      for (const entry of kept) this.#add(entry);
      this.#state = 'running';
    } catch (error) {
      if (signal.aborted) return;
      this.#state = 'failed';
      this.#parts.log.error('the persistent subscriptions could not be loaded', { error });
      afterDelay(this.#parts.clock, this.#limits.retryMs, signal, () => {
        if (!signal.aborted) this.#loading = this.#load(signal, Promise.resolve());
      });
    }
  }

  async #readConfig(): Promise<KeptGroup[]> {
    try {
      const event = await this.#parts.store.readEvent(CONFIG_STREAM, 'last');
      if (event.type !== CONFIG_TYPE && event.type !== OLD_CONFIG_TYPE)
        throw failedError(CONFIG_STREAM, '', `Its last event is a ${event.type}: append the last configuration`);
      return decodeConfig(event.data);
    } catch (error) {
      if (isSkuaError(error) && ABSENT.has(error.code)) return [];
      throw error;
    }
  }

  #add(kept: KeptGroup): Group {
    const group = new Group(this.#parts, kept);
    this.#groups.set(group.subscriptionId, group);
    group.start();
    this.#tick();
    return group;
  }

  /** Looks after the groups for as long as one of them has something to be looked at in time. */
  #tick(): void {
    this.#hasWork = true;
    if (this.#isTicking) return;
    this.#isTicking = true;
    this.#ticking = this.#tickAll();
  }

  async #tickAll(): Promise<void> {
    const { clock } = this.#parts;
    while (this.#hasWork) {
      const { signal } = this.#stopping;
      // oxlint-disable-next-line no-await-in-loop
      await clock.sleep(this.#limits.tickMs, signal);
      if (signal.aborted) {
        // Unless it has been started again meanwhile.
        if (signal === this.#stopping.signal) break;
        continue;
      }
      this.#hasWork = false;
      for (const group of this.#groups.values()) if (group.tick()) this.#hasWork = true;
    }
    this.#isTicking = false;
  }

  // Calls

  #assertLeading(): void {
    if (this.#state === 'stopped')
      throw new SkuaError('not_leader', 'Persistent subscriptions run on the leader, and this node does not lead.', {
        leader: null,
      });
  }

  async #ready(): Promise<void> {
    this.#assertLeading();
    await this.#loading;
    this.#assertLeading();
    if (this.#state !== 'running')
      throw new SkuaError('not_ready', 'The persistent subscriptions are being loaded. Try again in a moment.');
  }

  async #group(stream: string, name: string): Promise<Group> {
    await this.#ready();
    const group = this.#groups.get(`${stream}::${name}`);
    if (group === undefined || group.kept.stream !== stream) throw notFoundError(stream, name);
    return group;
  }

  #change<T>(change: () => Promise<T>): Promise<T> {
    const result = this.#changes.then(change);
    this.#changes = result.catch(() => {});
    return result;
  }

  create(stream: string, group: string, { settings, from, filter = undefined }: NewGroup, by: string): Promise<void> {
    return this.#change(async () => {
      await this.#ready();
      const other = this.#groups.get(`${stream}::${group}`)?.kept;
      if (other?.stream === stream) throw existsError(stream, group);
      if (other !== undefined)
        throw failedError(
          stream,
          group,
          `Group ${other.group} of stream ${other.stream} uses streams of the same names for its checkpoint and parked messages: choose another name`,
        );
      if (this.#groups.size >= this.#limits.groupsMax)
        throw failedError(stream, group, `There are already ${this.#limits.groupsMax} groups: delete some.`);
      checkGroup(stream, group, settings, filter ?? null);
      checkStart(this.#parts.store, stream, group, from);
      await filterOf(this.#parts, filter ?? null);
      const kept: KeptGroup = {
        stream,
        group,
        settings,
        filter: filter ?? null,
        startPosition: startText(from, stream === ALL_STREAM),
      };
      // What a group of this name has left behind, whose deletion was cut short.
      await this.#clear(stream, group);
      await this.#begin(kept);
      await this.#write([...this.#keptGroups(), kept], by);
      this.#add(kept);
    });
  }

  update(stream: string, group: string, { settings, from }: GroupChange, by: string): Promise<void> {
    return this.#change(async () => {
      const running = await this.#group(stream, group);
      const before = running.kept;
      const kept: KeptGroup = {
        ...before,
        settings: { ...settings, strategy: settings.strategy ?? before.settings.strategy ?? DEFAULT_SETTINGS.strategy },
        startPosition: from === undefined ? before.startPosition : startText(from, stream === ALL_STREAM),
      };
      checkGroup(stream, group, kept.settings, kept.filter);
      checkStart(this.#parts.store, stream, group, from ?? 'start');
      await running.stop(true);
      try {
        if (
          kept.startPosition !== before.startPosition &&
          (await loadCheckpoint(this.#parts, before))?.isInitial !== false
        )
          await this.#begin(kept);
        await this.#write(
          this.#keptGroups().map((other) => (other === before ? kept : other)),
          by,
        );
      } catch (error) {
        this.#replace(before);
        throw error;
      }
      this.#replace(kept);
    });
  }

  reset(stream: string, group: string, from: StartFrom, by: string): Promise<void> {
    return this.#change(async () => {
      const running = await this.#group(stream, group);
      const before = running.kept;
      const kept: KeptGroup = { ...before, startPosition: startText(from, stream === ALL_STREAM) };
      checkStart(this.#parts.store, stream, group, from);
      await running.stop(true);
      // Cut short behind this the group goes on where it was, and the reset is to be asked for again.
      let inForce = before;
      try {
        await this.#write(
          this.#keptGroups().map((other) => (other === before ? kept : other)),
          by,
        );
        inForce = kept;
        // The last checkpoint is the one that counts.
        if (isEndText(kept.startPosition)) await this.#begin(kept);
        else await this.#forget(checkpointStreamOf(stream, group));
      } finally {
        this.#replace(inForce);
      }
    });
  }

  delete(stream: string, group: string, by: string): Promise<void> {
    return this.#change(async () => {
      const running = await this.#group(stream, group);
      await this.#write(
        this.#keptGroups().filter((kept) => kept !== running.kept),
        by,
      );
      this.#groups.delete(running.subscriptionId);
      await running.stop(false);
      try {
        await this.#clear(stream, group);
      } catch (error) {
        // The streams are harmless, and go when a group of this name is made again.
        this.#parts.log.warn('the streams of a persistent subscription that was deleted could not be deleted', {
          stream,
          group,
          error,
        });
      }
    });
  }

  #keptGroups(): KeptGroup[] {
    return [...this.#groups.values()].map(({ kept }) => kept);
  }

  /**
   * Puts a group in the place of the one with its name; in the same place, as the order is that of the configuration.
   */
  #replace(kept: KeptGroup): void {
    if (this.#state !== 'running') return;
    const group = new Group(this.#parts, kept);
    this.#groups.set(group.subscriptionId, group);
    group.start();
    this.#tick();
  }

  /**
   * Before a group that begins at the end is known: an event that is written in between is not left out, and without
   * the configuration nothing heeds it.
   */
  async #begin(kept: KeptGroup): Promise<void> {
    if (!isEndText(kept.startPosition)) return;
    await writeInitialCheckpoint(this.#parts, kept, (await endOf(this.#parts, kept.stream)).after);
  }

  async #write(groups: readonly KeptGroup[], by: string): Promise<void> {
    const { store, writes, clock } = this.#parts;
    const { metadataVersion } = await store.streamInfo(CONFIG_STREAM);
    if (metadataVersion < 0)
      await writes.append(metastreamOf(CONFIG_STREAM), ANY, [
        ownEvent(this.#parts, METADATA_TYPE, true, encodeText(CONFIG_METADATA)),
      ]);
    await writes.append(CONFIG_STREAM, ANY, [
      ownEvent(this.#parts, CONFIG_TYPE, true, encodeConfig(groups, clock.nowMs(), by)),
    ]);
  }

  async #clear(stream: string, group: string): Promise<void> {
    await this.#forget(checkpointStreamOf(stream, group));
    await this.#forget(parkedStreamOf(stream, group));
  }

  async #forget(name: string): Promise<void> {
    const { store, writes } = this.#parts;
    const { lastEventNumber, isSoftDeleted, isTombstoned } = await store.streamInfo(name);
    if (lastEventNumber >= 0 && !isSoftDeleted && !isTombstoned) await writes.deleteStream(name, ANY, 'soft');
  }

  async info(stream: string, group: string): Promise<GroupInfo> {
    return (await this.#group(stream, group)).info();
  }

  async parkedStream(stream: string, group: string): Promise<string> {
    await this.#group(stream, group);
    return parkedStreamOf(stream, group);
  }

  async list(stream?: string): Promise<GroupInfo[]> {
    await this.#ready();
    // By stream, and the groups of a stream in the order in which they were made.
    const groups = [...this.#groups.values()]
      .filter(({ kept }) => stream === undefined || kept.stream === stream)
      .toSorted((a, b) => (a.kept.stream < b.kept.stream ? -1 : Number(a.kept.stream > b.kept.stream)));
    return Promise.all(groups.map((group) => group.info()));
  }

  figures(): Promise<readonly GroupInfo[]> {
    return Promise.all([...this.#groups.values()].map((group) => group.figures()));
  }

  figuresNow(): readonly GroupInfo[] | null {
    return this.#state === 'running' ? [...this.#groups.values()].map((group) => group.figuresNow()) : null;
  }

  async replayParked(stream: string, group: string, stopAt: number | null): Promise<void> {
    const running = await this.#group(stream, group);
    if (stopAt !== null && stopAt < 0)
      throw failedError(stream, group, 'Cannot stop replaying parked message at a negative version.');
    running.replayParked(stopAt);
  }

  async truncateParked(stream: string, group: string, stopAt: number | null): Promise<void> {
    const running = await this.#group(stream, group);
    if (stopAt !== null && stopAt < 0)
      throw failedError(stream, group, 'Cannot stop truncating parked message at a negative version.');
    await running.parked.truncate(stopAt);
  }

  async connect(stream: string, group: string, options: ConnectOptions): Promise<GroupConsumer> {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop
      const running = await this.#group(stream, group);
      if (!running.isStopped) return running.connect(options);
      // The group is being changed. oxlint-disable-next-line no-await-in-loop
      await this.#changes;
    }
  }

  async take(stream: string, group: string, count: number): Promise<readonly Delivery[]> {
    return (await this.#group(stream, group)).take(count);
  }

  async ack(stream: string, group: string, ids: readonly string[]): Promise<void> {
    (await this.#group(stream, group)).ack(ids, null);
  }

  async nack(stream: string, group: string, ids: readonly string[], action: NackAction, reason: string): Promise<void> {
    (await this.#group(stream, group)).nack(ids, action, reason, null);
  }
}
