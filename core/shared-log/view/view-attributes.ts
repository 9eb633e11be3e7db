import {
  ATTRIBUTE_INDEXES,
  type AttributeEntries,
  type AttributeFollower,
  type AttributeIndexName,
  type AttributeIndexStatus,
  type AttributeSetting,
  type AttributeSink,
} from '../../attributes/api.ts';
import { AttributeIntake } from '../../attributes/intake/intake.ts';
import { isSkuaError } from '../../base/errors.ts';
import { isMiss } from '../../base/step.ts';
import type { Outcome } from '../../base/step.ts';
import type { ObjectTable } from '../files/files.ts';
import { coveredTo, settingOf } from '../format/manifest-attributes.ts';
import type { ObjectManifest } from '../format/manifest.ts';
import { ViewEntries } from './view-entries.ts';

/** One attribute index in a view. */
class ViewAttribute implements AttributeSink {
  readonly entries: ViewEntries;
  coveredTo: number;
  /** It has all that is committed. One that a tick is building still has what its tables have. */
  isLive: boolean;

  constructor(tables: readonly ObjectTable[], covered: number, isLive: boolean) {
    this.entries = new ViewEntries(tables);
    this.coveredTo = covered;
    this.isLive = isLive;
  }

  add(hi: number, lo: number, position: number): void {
    this.entries.mem.add(hi, lo, position, position);
  }

  end(): void {}
}

/** The attribute indexes of one view: the tables of its manifest, and entries of the commits behind them. */
export class AttributesOfView {
  readonly #manifest: ObjectManifest;
  readonly #indexes = new Map<AttributeIndexName, ViewAttribute>();
  readonly #intake = new AttributeIntake({ names: null, correlations: null, tags: null });
  #setting: AttributeSetting;

  /** `tablesOf` gives the tables of an index. */
  constructor(manifest: ObjectManifest, tablesOf: (name: AttributeIndexName) => readonly ObjectTable[]) {
    this.#manifest = manifest;
    this.#setting = settingOf(manifest);
    for (const name of ATTRIBUTE_INDEXES) {
      const covered = coveredTo(manifest, name);
      if (this.#setting[name])
        this.#indexes.set(name, new ViewAttribute(tablesOf(name), covered, covered >= manifest.logEnd));
    }
    this.#setSinks();
  }

  get(name: AttributeIndexName): ViewAttribute | undefined {
    return this.#indexes.get(name);
  }

  /** Whether the log has it by its setting. */
  isOn(name: AttributeIndexName): boolean {
    return this.#setting[name];
  }

  get tables(): readonly ObjectTable[] {
    return [...this.#indexes.values()].flatMap(({ entries }) => entries.tables);
  }

  /** Framed records of the log, before readers see them. What was taken in already is passed over. */
  takeIn(records: Uint8Array, start: number, end: number): void {
    const { chunkSizeBytes } = this.#manifest;
    const live = [...this.#indexes.values()].filter((one) => one.isLive && one.coveredTo < end);
    if (live.length === 0) return;
    const isNext = live.every(
      ({ coveredTo: covered }) =>
        covered === start || (start % chunkSizeBytes === 0 && start > covered && start - covered < chunkSizeBytes),
    );
    if (isNext && this.#intake.take(records, start) === records.length) for (const one of live) one.coveredTo = end;
    else {
      for (const one of live) one.isLive = false;
      this.#setSinks();
    }
  }

  /** One that is switched on is there when a manifest names it. */
  follow(setting: AttributeSetting): void {
    this.#setting = setting;
    for (const name of ATTRIBUTE_INDEXES) if (!setting[name]) this.#indexes.delete(name);
    this.#setSinks();
  }

  /** Its tables are damaged. */
  discard(name: AttributeIndexName): void {
    this.#indexes.delete(name);
    this.#setSinks();
  }

  #setSinks(): void {
    const of = (name: AttributeIndexName): ViewAttribute | null => {
      const one = this.#indexes.get(name);
      return one?.isLive === true ? one : null;
    };
    this.#intake.sinks = { names: of('names'), correlations: of('correlations'), tags: of('tags') };
  }

  status(logEnd: number): readonly AttributeIndexStatus[] {
    return ATTRIBUTE_INDEXES.map((name) => {
      const one = this.#indexes.get(name);
      const { tables, mem } = one?.entries ?? { tables: [], mem: { count: 0 } };
      return {
        name,
        state: !this.#setting[name] ? 'off' : one?.isLive === true ? 'live' : 'building',
        coveredTo: one?.coveredTo ?? 0,
        logEnd,
        entries: tables.reduce((sum, { entries }) => sum + entries, mem.count),
        tableBytes: tables.reduce((sum, { file }) => sum + file.sizeBytes, 0),
      };
    });
  }
}

interface CurrentAttributes {
  readonly view: { readonly attributes: AttributesOfView; readonly table: { readonly end: number } };
}

/** The attribute indexes as the view in force has them. */
export class ViewAttributes implements AttributeFollower {
  readonly #current: CurrentAttributes;
  readonly #readers: { readonly [Name in AttributeIndexName]: AttributeEntries };

  constructor(current: CurrentAttributes) {
    this.#current = current;
    this.#readers = {
      names: new CurrentEntries(current, 'names'),
      correlations: new CurrentEntries(current, 'correlations'),
      tags: new CurrentEntries(current, 'tags'),
    };
  }

  of(name: AttributeIndexName): AttributeEntries | null {
    return this.#current.view.attributes.get(name) === undefined ? null : this.#readers[name];
  }

  isOn(name: AttributeIndexName): boolean {
    return this.#current.view.attributes.isOn(name);
  }

  takeIn(records: Uint8Array, start: number, end: number): void {
    this.#current.view.attributes.takeIn(records, start, end);
  }

  follow(setting: AttributeSetting): void {
    this.#current.view.attributes.follow(setting);
  }
}

/** A reader may have it longer than a view is in force, or the log has the index. */
class CurrentEntries implements AttributeEntries {
  readonly #current: CurrentAttributes;
  readonly #name: AttributeIndexName;

  constructor(current: CurrentAttributes, name: AttributeIndexName) {
    this.#current = current;
    this.#name = name;
  }

  get coveredTo(): number {
    const { attributes, table } = this.#current.view;
    const one = attributes.get(this.#name);
    if (one === undefined) return 0;
    // Where a chunk was ended the log's end is the next one, and nothing lies between.
    return one.isLive ? Math.max(one.coveredTo, table.end) : one.coveredTo;
  }

  /**
   * A search that finds damage fails; the next one does without the index. So it is with a table that is gone, unless a
   * newer manifest names others.
   */
  run(hi: number, lo: number, from: number, isUpwards: boolean, count: number, out: number[]): Outcome {
    const { attributes } = this.#current.view;
    const discard = (error: unknown): void => {
      if (isSkuaError(error, 'index_corrupt') || isSkuaError(error, 'file_not_found')) attributes.discard(this.#name);
    };
    try {
      const { entries } = attributes.get(this.#name) ?? { entries: NO_ENTRIES };
      const outcome = entries.run(hi, lo, from, isUpwards, count, out);
      if (isMiss(outcome)) outcome.catch(discard);
      return outcome;
    } catch (error) {
      discard(error);
      throw error;
    }
  }
}

const NO_ENTRIES = new ViewEntries([]);
