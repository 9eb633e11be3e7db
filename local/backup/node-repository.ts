import type { Repository, RepositoryWorld } from '../../core/backup/repository-api.ts';
import { openRepository } from '../../core/backup/repository.ts';
import { SkuaError } from '../../core/errors.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import { openObjects } from '../../infra/objects/open.ts';
import type { BackupSettings } from './node-settings.ts';

/**
 * The repository of a node, opened when it is first needed and made where there is none. One that could not be opened is
 * tried again at the next call.
 */
export class NodeRepository {
  readonly #settings: BackupSettings;
  readonly #world: RepositoryWorld;
  #objects: Promise<ObjectStore> | null = null;
  #opening: Promise<Repository> | null = null;
  #isClosed = false;

  constructor(settings: BackupSettings, world: RepositoryWorld) {
    this.#settings = settings;
    this.#world = world;
  }

  /** Rejects with what `openRepository` rejects with, and `store_closed`. */
  open(): Promise<Repository> {
    if (this.#isClosed) return Promise.reject(new SkuaError('store_closed', 'The node is stopping: its repository of backups is closed.'));
    if (this.#opening !== null) return this.#opening;
    const opening = this.#open();
    this.#opening = opening;
    opening.catch(() => { this.#opening = null; });
    return opening;
  }

  async #open(): Promise<Repository> {
    const { place, key, compression } = this.#settings;
    // The store of a repository that could not be opened serves the next attempt.
    this.#objects ??= openObjects(place!);
    return openRepository(await this.#objects, { key, create: true, compression }, this.#world);
  }

  /** What is still under way fails; nobody waits for a repository that does not answer. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#objects?.catch(() => null))?.close();
  }
}
