import { Attributes, type AttributesOptions } from '../../attributes/attributes.ts';
import {
  type AttributeFollower,
  type AttributeIndexStatus,
  ATTRIBUTE_SETTING_DEFAULT,
  NO_ATTRIBUTES,
} from '../../attributes/api.ts';
import type { BlockCache } from '../../cache/cache.ts';
import type { IndexSettings } from '../../index/api.ts';
import type { TransactionLog } from '../../log/api.ts';
import type { EventStoreInternals } from '../../streams/streams.ts';

interface StoreAttributesParts {
  readonly world: AttributesOptions['world'];
  readonly cache: BlockCache;
  readonly log: TransactionLog;
  /** A store that is opened to be looked at has none: it neither builds nor writes any. */
  readonly isWritten: boolean;
  readonly settings: Partial<IndexSettings>;
}

/** The attribute indexes of a directory that is open. */
export class StoreAttributes {
  readonly #attributes: Attributes | null;

  constructor(parts: StoreAttributesParts) {
    this.#attributes = parts.isWritten
      ? new Attributes({
          world: parts.world,
          cache: parts.cache,
          log: parts.log.table,
          lastEpoch: parts.log.checkpoints.epoch.value,
          settings: parts.settings,
        })
      : null;
  }

  /** What the streams read by, and pass on what is committed to. */
  get follower(): AttributeFollower {
    return this.#attributes ?? NO_ATTRIBUTES;
  }

  /** For scavenges and checks; null where there are none. */
  get attributes(): Attributes | null {
    return this.#attributes;
  }

  /** Begins what the setting of the log says, or what a log without one has. */
  async begin(store: EventStoreInternals): Promise<void> {
    this.#attributes?.begin((await store.loadSetting()) ?? ATTRIBUTE_SETTING_DEFAULT);
  }

  status(): readonly AttributeIndexStatus[] {
    return this.#attributes?.status() ?? [];
  }

  /** Begins a stop. */
  end(): void {
    this.#attributes?.end();
  }

  async close(isClean: boolean): Promise<void> {
    await this.#attributes?.close(isClean);
  }
}
