import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { type NodeAddress, nodeKey } from '../../ports/nodes.ts';
import type { GossipEntry } from '../../ports/peers.ts';
import { MEMBERS_MAX } from './api.ts';

/**
 * Another member, as this one knows it. Times are monotonic, in milliseconds, where nothing else is said; -Infinity for
 * never.
 */
export interface MemberRecord {
  entry: GossipEntry;
  readonly addedMs: number;
  /** When something was heard of it that was not known, from whomever, by both clocks. */
  newsMs: number;
  heardMs: number;
  /** When it spoke to this member itself, and what time its own clock then showed. */
  heardFromMs: number;
  ownSentMs: number;
  /**
   * A connection to it was refused or broke, and it is asked again; or it was, without an answer. An answer of its own
   * ends both.
   */
  lost: 'no' | 'asking' | 'yes';
  /** It could not be reached since there was news of it last. */
  isOut: boolean;
  isClockOff: boolean;
  /** As `ClusterMember.aheadMs`. */
  aheadMs: number | null;
}

/**
 * How an entry came: in the answer to a call to its address, which proves which instance is there; by a call that names
 * the address; from a third; from the node objects, where it may be of any age.
 */
export type EntrySource = 'answer' | 'call' | 'relay' | 'object';
/**
 * `conflict`: another instance is known under the address, and is not known to have gone: ask which instance answers
 * there.
 */
export type MergeOutcome = 'news' | 'known' | 'conflict' | 'own' | 'full';

export interface TableOptions {
  readonly self: NodeAddress;
  readonly clock: Clock;
  readonly log: Log;
  /** A member of which nothing new is heard for so long is dead. */
  readonly aliveMs: number;
  /** Clocks that differ by more are told of. */
  readonly allowedDifferenceMs: number;
}

/** What gossip has brought about the other members: at most MEMBERS_MAX - 1 of them, one instance for each address. */
export class MemberTable {
  readonly #options: TableOptions;
  readonly #self: string;
  readonly #records = new Map<string, MemberRecord>();
  /** Instances that others have replaced. A member that passes their entries on does not know it yet. */
  readonly #former = new Set<string>();
  #isFullLogged = false;

  constructor(options: TableOptions) {
    this.#options = options;
    this.#self = nodeKey(options.self);
  }

  /** Ordered by address. */
  records(): readonly MemberRecord[] {
    return [...this.#records.values()];
  }

  get(node: NodeAddress): MemberRecord | null {
    return this.#records.get(nodeKey(node)) ?? null;
  }

  byInstance(instanceId: string): MemberRecord | null {
    for (const record of this.#records.values()) if (record.entry.instanceId === instanceId) return record;
    return null;
  }

  isAlive({ entry, newsMs, isOut }: MemberRecord): boolean {
    return !isOut && entry.state !== 'Shutdown' && this.#options.clock.monotonicMs() - newsMs <= this.#options.aliveMs;
  }

  merge(entry: GossipEntry, source: EntrySource): MergeOutcome {
    const key = nodeKey(entry.node);
    if (key === this.#self) return 'own';
    const record = this.#records.get(key);
    if (record === undefined) {
      if (source === 'relay' && this.#former.has(entry.instanceId)) return 'known';
      return this.#makeRoom() ? this.#put(key, entry, source) : 'full';
    }
    if (record.entry.instanceId === entry.instanceId) return this.#update(record, entry, source);
    if (source === 'relay' && this.#former.has(entry.instanceId)) return 'known';
    if (source === 'object' && entry.sentMs <= record.entry.sentMs) return 'known';
    if (source !== 'answer' && this.isAlive(record)) return 'conflict';
    this.#retire(record);
    return this.#put(key, entry, source);
  }

  /** The instance spoke to this member, as by an answer to a request for commits. */
  heardFrom(instanceId: string): void {
    const record = this.byInstance(instanceId);
    if (record !== null) this.#hear(record, true);
  }

  remove(node: NodeAddress): void {
    const record = this.get(node);
    if (record === null) return;
    this.#retire(record);
    this.#records.delete(nodeKey(node));
  }

  /** Those from which no member has heard for so long. */
  unseenFor(ms: number): MemberRecord[] {
    const beforeMs = this.#options.clock.monotonicMs() - ms;
    return this.records().filter(({ newsMs, addedMs }) => Math.max(newsMs, addedMs) <= beforeMs);
  }

  #update(record: MemberRecord, entry: GossipEntry, source: EntrySource): MergeOutcome {
    const isOwnWord = source === 'answer' || source === 'call';
    // What a member says itself is measured by what it said itself, so that nothing that others made of it can silence
    // it.
    const isNews = isOwnWord
      ? entry.sentMs > record.ownSentMs
      : entry.sentMs > record.entry.sentMs && !this.#speaks(record);
    if (isOwnWord) this.#compareClocks(record, entry);
    if (source === 'answer') {
      record.lost = 'no';
      this.#hear(record, true);
    }
    if (!isNews) return 'known';
    record.entry = entry;
    if (isOwnWord) record.ownSentMs = entry.sentMs;
    if (source !== 'object') this.#hear(record, isOwnWord);
    return 'news';
  }

  /** It is in touch with this member itself: what others say of it adds nothing. */
  #speaks({ heardFromMs: saidMs }: MemberRecord): boolean {
    return this.#options.clock.monotonicMs() - saidMs <= this.#options.aliveMs / 2;
  }

  #put(key: string, entry: GossipEntry, source: EntrySource): 'news' {
    const isOwnWord = source === 'answer' || source === 'call';
    const record: MemberRecord = {
      entry,
      addedMs: this.#options.clock.monotonicMs(),
      newsMs: -Infinity,
      heardMs: entry.sentMs,
      heardFromMs: -Infinity,
      ownSentMs: isOwnWord ? entry.sentMs : -Infinity,
      lost: 'no',
      isOut: false,
      isClockOff: false,
      aheadMs: null,
    };
    this.#records.set(key, record);
    if (source !== 'object') this.#hear(record, isOwnWord);
    if (isOwnWord) this.#compareClocks(record, entry);
    const inOrder = [...this.#records].sort(([a], [b]) => (a < b ? -1 : 1));
    this.#records.clear();
    for (const [address, member] of inOrder) this.#records.set(address, member);
    return 'news';
  }

  #hear(record: MemberRecord, isOwnWord: boolean): void {
    const { clock } = this.#options;
    record.newsMs = clock.monotonicMs();
    record.heardMs = clock.nowMs();
    record.isOut = false;
    if (isOwnWord) record.heardFromMs = record.newsMs;
  }

  #compareClocks(record: MemberRecord, entry: GossipEntry): void {
    const { clock, log, allowedDifferenceMs } = this.#options;
    record.aheadMs = entry.sentMs - clock.nowMs();
    const differenceMs = Math.round(record.aheadMs);
    const isOff = Math.abs(differenceMs) > allowedDifferenceMs;
    if (isOff && !record.isClockOff)
      log.warn('the clock of a member differs from this one: synchronise the clocks of all members', {
        member: nodeKey(entry.node),
        differenceMs,
      });
    record.isClockOff = isOff;
  }

  #retire({ entry }: MemberRecord): void {
    this.#former.add(entry.instanceId);
    if (this.#former.size > MEMBERS_MAX) this.#former.delete(this.#former.values().next().value!);
  }

  /** Of a full table the one that is dead for longest makes room. */
  #makeRoom(): boolean {
    if (this.#records.size < MEMBERS_MAX - 1) return true;
    const oldest = this.records()
      .filter((record) => !this.isAlive(record))
      .sort((a, b) => a.newsMs - b.newsMs)[0];
    if (oldest !== undefined) this.remove(oldest.entry.node);
    else if (!this.#isFullLogged)
      this.#options.log.warn('there are more members than are tracked: some do not know of each other', {
        limit: MEMBERS_MAX,
      });
    this.#isFullLogged ||= oldest === undefined;
    return oldest !== undefined;
  }
}
