import type { Outcome } from '../base/step.ts';

/** The attribute indexes that a log may have. */
export const ATTRIBUTE_INDEXES = ['names', 'correlations', 'tags'] as const;
export type AttributeIndexName = (typeof ATTRIBUTE_INDEXES)[number];

/** One attribute index as readers see it. */
export interface AttributeEntries {
  /**
   * Position of the log below which all that is committed has its entries; 0 while nothing has, and again when the
   * index was closed: to be asked for in each step.
   */
  readonly coveredTo: number;
  /**
   * A step (core/base/step.ts): the positions of a hash from `from` on upwards, or downwards, nearest first, `count` of
   * them or all that there are; HIT, also with none.
   */
  run(hi: number, lo: number, from: number, isUpwards: boolean, count: number, out: number[]): Outcome;
}

/** The attribute indexes of a log as readers see them; null for one that it does not have, or not yet. */
export interface AttributeIndexes {
  /** Whether the log is to have it. */
  isOn(name: AttributeIndexName): boolean;
  of(name: AttributeIndexName): AttributeEntries | null;
}

/** What of a log is indexed. */
export type AttributeSetting = { readonly [Name in AttributeIndexName]: boolean };

/** What a log without a setting has. */
export const ATTRIBUTE_SETTING_DEFAULT: AttributeSetting = { names: true, correlations: false, tags: false };

/** How an index stands. */
export interface AttributeIndexStatus {
  readonly name: AttributeIndexName;
  /** `building` while it is behind the log's end and reads it. */
  readonly state: 'off' | 'building' | 'live';
  readonly coveredTo: number;
  readonly logEnd: number;
  readonly entries: number;
  readonly tableBytes: number;
  /** Why building it does not get on; it is tried again. */
  readonly error?: string;
}

/** What takes the entries of one index: the index of a node, the tables of a tick, the memtable of a view. */
export interface AttributeSink {
  /** An event that the record at `position` commits has the attribute with this hash. */
  add(hi: number, lo: number, position: number): void;
  /** All entries of the events that the record at `position` commits have been added; called also where it has none. */
  end(position: number): void;
}

export type AttributeSinks = { readonly [Name in AttributeIndexName]: AttributeSink | null };

/** Entries of records that were read before these were committed. */
export interface ReadAhead {
  /** Gives them to the sinks in the order of the log. Of how many bytes of the records they are, from the first on. */
  giveTo(sinks: AttributeSinks): number;
}

/** What takes in what is committed, in the order of the log. */
export interface AttributeFollower extends AttributeIndexes {
  /**
   * Framed records that lie in the log from `start` to `end` have been committed, and no reader sees them yet. `ahead`:
   * what of them was read before.
   */
  takeIn(records: Uint8Array, start: number, end: number, ahead?: ReadAhead | null): void;
  /** The log says from here on what of it is indexed. */
  follow(setting: AttributeSetting): void;
}

/** Of a log that has none. */
export const NO_ATTRIBUTES: AttributeFollower = {
  isOn: () => false,
  of: () => null,
  takeIn() {},
  follow() {},
};
