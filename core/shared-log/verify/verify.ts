import { putI64 } from '../../base/bytes.ts';
import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { ongoingFileBytes } from '../../log/format/chunk-format.ts';
import { listKind, type Strangers } from '../../ports/object-kinds.ts';
import type { ObjectInfo, ObjectStore } from '../../ports/object-store.ts';
import type { Storage } from '../../ports/storage.ts';
import type { StreamHasher } from '../../base/stream-hash.ts';
import type { VerifyFinding, VerifyProgress } from '../../integrity/api.ts';
import { verifyDirectory, type VerifySummary } from '../../integrity/integrity.ts';
import type { ObjectLogOptions, ObjectWorld } from '../api.ts';
import { decodeCommitObject } from '../format/commit-object.ts';
import { commitKey, commitNumberOf, COMMITS, FILES, manifestNumberOf } from '../format/object-keys.ts';
import { decodeManifest, newestManifestNumber, type ObjectManifest } from '../format/manifest.ts';
import { STATE_PATH } from '../tick/scavenge-slice.ts';
import { listManifests } from '../sweep/sweep.ts';
import { FETCH_BYTES, FETCHES_MAX } from '../files/read-ahead.ts';
import { openOverlay } from '../overlay/overlay.ts';

const CHECKPOINT_BYTES = 8;

interface VerifyObjectsOptions {
  readonly world: ObjectWorld;
  readonly options?: ObjectLogOptions;
  /** Empty; for the chunk that is being filled and the tail. The caller clears it afterwards. */
  readonly scratch: Storage;
  readonly hasher?: StreamHasher;
}

/** What no checksum covers, so that a changed byte may go unnoticed there. */
export interface VerifyObjectsNote {
  readonly kind: 'note';
  readonly code: string;
  readonly file: string;
  readonly message: string;
}

export interface VerifyObjectsSummary extends Pick<
  VerifySummary,
  'chunks' | 'records' | 'events' | 'indexTables' | 'indexEntries' | 'errors' | 'warnings'
> {
  readonly manifests: number;
  /** Objects that the newest manifest names. */
  readonly objects: number;
  /** Commits behind it. */
  readonly commits: number;
  /**
   * Objects that wait for their removal, and those that no manifest names: a tick that is at work uploads such ones,
   * and one that died leaves them.
   */
  readonly waiting: number;
  readonly unnamed: number;
  readonly notes: number;
}

type VerifyReport = VerifyFinding | VerifyProgress | VerifyObjectsNote;

/**
 * Checks a store on object storage, without changing anything and beside writers: manifests with their digests,
 * whether every object that the newest one names is there and as long as it says, the commits behind it, and then what
 * a node's directory is checked for, with every checksum there is. Throws `file_not_found` where there is no store, and
 * `too_busy` when what is being read was rewritten and removed meanwhile.
 */
export async function* verifyObjects(
  options: VerifyObjectsOptions,
): AsyncGenerator<VerifyReport, VerifyObjectsSummary> {
  const { world } = options;
  const lost = new Set<string>();
  const objects = watched(world.objects, lost);
  return yield* new Verification({ ...options, world: { ...world, objects } }, lost).run();
}

class Verification {
  readonly #options: VerifyObjectsOptions;
  /** Keys that were asked for and not there. */
  readonly #lost: ReadonlySet<string>;
  readonly #sum = {
    manifests: 0,
    objects: 0,
    commits: 0,
    waiting: 0,
    unnamed: 0,
    notes: 0,
    chunks: 0,
    records: 0,
    events: 0,
    indexTables: 0,
    indexEntries: 0,
    errors: 0,
    warnings: 0,
  };
  readonly #said: VerifyReport[] = [];
  readonly #wrong = new Set<string>();

  constructor(options: VerifyObjectsOptions, lost: ReadonlySet<string>) {
    this.#options = options;
    this.#lost = lost;
  }

  async *run(): AsyncGenerator<VerifyReport, VerifyObjectsSummary> {
    const newest = await this.#manifests();
    yield* this.#said.splice(0);
    if (newest === null) return this.#sum;
    const isWhole = await this.#named(newest);
    await this.#commits(newest);
    if (isWhole) await this.#unprotected(newest);
    yield* this.#said.splice(0);
    if (isWhole) yield* this.#directory(newest);
    return this.#sum;
  }

  #error(code: string, file: string, message: string): void {
    // What several meet is told once.
    if (this.#wrong.has(file)) return;
    this.#wrong.add(file);
    this.#sum.errors++;
    this.#said.push({ kind: 'finding', severity: 'error', code, file, offset: null, message });
  }

  #note(code: string, file: string, message: string): void {
    this.#sum.notes++;
    this.#said.push({ kind: 'note', code, file, message });
  }

  readonly #tellStrangers = ({ count, first, place }: Strangers): void => {
    this.#said.push({
      kind: 'note',
      code: 'stranger',
      file: first,
      message: `${count === 1 ? 'An object' : `${count} objects`} in ${place}, ${first}${count === 1 ? '' : ' first'}, ${count === 1 ? 'has a name' : 'have names'} unknown to the log: skipped, and never removed.`,
    });
  };

  /** Reads all that there are; gives the newest, or null when that is none. */
  async #manifests(): Promise<ObjectManifest | null> {
    const { objects, digests } = this.#options.world;
    const listed = await listManifests(objects, this.#tellStrangers);
    if (listed.length === 0)
      throw new SkuaError('file_not_found', `There is no store under ${objects.place}: it holds no manifest.`, {
        place: objects.place,
      });
    let newest: ObjectManifest | null = null;
    await inParallel(listed.length, FETCHES_MAX, async (i) => {
      const { key } = listed[i]!;
      const bytes = await objects.get(key);
      // A tick has removed it since.
      if (bytes === null && i > 0) return;
      this.#sum.manifests++;
      try {
        if (bytes === null)
          throw new SkuaError('manifest_invalid', `The manifest ${key} is listed but can't be read.`, { key });
        const manifest = decodeManifest(key, manifestNumberOf(key)!, bytes, digests);
        if (i === 0) newest = manifest;
      } catch (error) {
        if (!isSkuaError(error)) throw error;
        this.#error(error.code, key, error.message);
      }
    });
    return newest;
  }

  /** Compares what the newest manifest names with what is there; false where something is missing. */
  async #named(manifest: ObjectManifest): Promise<boolean> {
    const { objects } = this.#options.world;
    const there = new Map<string, number>();
    for await (const { key, sizeBytes } of listKind(objects, FILES, { onStrangers: this.#tellStrangers }))
      there.set(key, sizeBytes);
    const named = new Map<string, { readonly name: string; readonly sizeBytes: number }>();
    const { chunks, ongoing, files, dropped } = manifest;
    for (const { key, name, sizeBytes } of [...chunks, ...files]) if (key !== null) named.set(key, { name, sizeBytes });
    for (const { key, from, to } of ongoing?.segments ?? [])
      named.set(key, { name: `${ongoing!.name}, positions ${from} to ${to}`, sizeBytes: to - from });
    const wrong = [...named].filter(([key, { sizeBytes }]) => there.get(key) !== sizeBytes);
    if (wrong.length > 0) await this.#refuseNewer(manifest);
    for (const [key, { name, sizeBytes }] of wrong) {
      const found = there.get(key);
      if (found === undefined)
        this.#error(
          'object_missing',
          key,
          `The object ${key}, which holds ${name}, is gone, but the newest manifest names it. Restore it from a version or a backup of the bucket.`,
        );
      else
        this.#error(
          'object_size',
          key,
          `The object ${key}, which holds ${name}, has ${found} bytes instead of ${sizeBytes}. Restore it from a version or a backup of the bucket.`,
        );
    }
    const waiting = new Set(dropped.map(({ key }) => key));
    this.#sum.objects = named.size;
    this.#sum.waiting = dropped.filter(({ key }) => there.has(key)).length;
    for (const key of there.keys()) if (!named.has(key) && !waiting.has(key)) this.#sum.unnamed++;
    return wrong.length === 0;
  }

  /** Reads every commit behind the manifest: a reader that needs them reads few, since each carries those before it. */
  async #commits({ boundary }: ObjectManifest): Promise<void> {
    const { objects, digests } = this.#options.world;
    const listed: ObjectInfo[] = [];
    for await (const info of listKind(objects, COMMITS, {
      onStrangers: this.#tellStrangers,
      after: commitKey(boundary - 1),
    }))
      listed.push(info);
    const check = async ({ key }: ObjectInfo): Promise<void> => {
      const bytes = await objects.get(key);
      try {
        // A newer manifest has taken in one that is gone; a gap is found by a reader of all of them.
        if (bytes !== null) decodeCommitObject(key, commitNumberOf(key) ?? -1, bytes, digests);
      } catch (error) {
        if (!isSkuaError(error)) throw error;
        this.#error(error.code, key, error.message);
      }
    };
    const small = listed.filter(({ sizeBytes }) => sizeBytes <= FETCH_BYTES);
    await inParallel(small.length, FETCHES_MAX, (i) => check(small[i]!));
    for (const info of listed) if (info.sizeBytes > FETCH_BYTES) await check(info);
  }

  /** Files without checksums in themselves are compared with those that the manifest has. */
  async #unprotected({ files, ongoing }: ObjectManifest): Promise<void> {
    const {
      world: { objects, digests },
    } = this.#options;
    const state = files.find(({ name }) => name === STATE_PATH);
    const parts = [
      ...(ongoing?.segments ?? []).map(({ key, from, to, crc32 }) => ({
        key,
        crc32,
        sizeBytes: to - from,
        what: `positions ${from} to ${to} of ${ongoing!.name}`,
      })),
      ...(state === undefined || state.key === null
        ? []
        : [{ key: state.key, crc32: state.crc32, sizeBytes: state.sizeBytes, what: state.name }]),
    ];
    for (const { key, crc32, sizeBytes, what } of parts) {
      if (crc32 === undefined) {
        this.#note(
          'unprotected',
          key,
          `The object ${key} (${what}, ${sizeBytes} bytes) has no checksum, as an older version wrote it: a changed byte is detected only if it breaks a record. The next tick that rewrites it gives it one.`,
        );
        continue;
      }
      let found = 0;
      for (let from = 0; from < sizeBytes; from += FETCHES_MAX * FETCH_BYTES) {
        const bytes = await objects.get(key, { from, length: Math.min(FETCHES_MAX * FETCH_BYTES, sizeBytes - from) });
        if (bytes === null) return;
        found = digests.crc32(bytes, found);
      }
      if (found !== crc32)
        this.#error(
          'crc_mismatch',
          key,
          `The object ${key} (${what}) does not match its checksum: it has changed since it was written. Restore it from a version or a backup of the bucket.`,
        );
    }
  }

  /** Checks all of it as a node's directory. */
  async *#directory(manifest: ObjectManifest): AsyncGenerator<VerifyReport, void> {
    const { world, options = {}, scratch, hasher } = this.#options;
    let overlay;
    try {
      overlay = await openOverlay(world, options, scratch);
    } catch (error) {
      if (!isSkuaError(error, 'log_corrupt')) throw error;
      this.#error(
        error.code,
        typeof error.data['key'] === 'string' ? error.data['key'] : COMMITS.prefix,
        error.message,
      );
      yield* this.#said.splice(0);
      return;
    }
    try {
      const { storage, log, end } = overlay;
      this.#sum.commits = log.boundary - overlay.manifest.boundary;
      if (log.filling !== null) {
        const file = await storage.open(log.filling.name, 'write');
        await file.truncate(ongoingFileBytes(manifest.chunkSizeBytes));
        await file.close();
      }
      // Where the log ends is known here from the commits.
      for (const [name, value] of [
        ['writer.chk', end],
        ['chaser.chk', end],
        ['epoch.chk', -1],
        ['proposal.chk', -1],
        ['truncate.chk', -1],
      ] as const) {
        const bytes = new Uint8Array(CHECKPOINT_BYTES);
        putI64(bytes, 0, value);
        const file = await storage.create(name);
        await file.writeAt(0, bytes);
        await file.close();
      }
      const run = verifyDirectory({
        storage,
        digests: world.digests,
        clock: world.clock,
        ...(hasher !== undefined && { hasher }),
      });
      for (let next = await run.next(); ; next = await run.next()) {
        // What could not be read because it was removed is no finding.
        if (this.#lost.size > 0) await this.#refuseNewer(overlay.manifest);
        if (next.done === true) return this.#add(next.value);
        const said = next.value;
        // Before the first tick has taken over commits there is no index.
        if (said.kind === 'finding' && said.code === 'index_missing' && overlay.manifest.logEnd === 0)
          this.#sum.warnings--;
        // What a directory can't vouch for has been compared with the manifest.
        else if (said.kind === 'finding' || said.kind === 'progress') yield said;
      }
    } finally {
      await overlay.close();
    }
  }

  #add(summary: VerifySummary): void {
    for (const name of ['chunks', 'records', 'events', 'indexTables', 'indexEntries', 'errors', 'warnings'] as const)
      this.#sum[name] += summary[name];
  }

  async #refuseNewer({ number }: ObjectManifest): Promise<void> {
    const { objects } = this.#options.world;
    if ((await newestManifestNumber(objects)) === number) return;
    throw new SkuaError(
      'too_busy',
      `Objects of ${objects.place} were replaced and removed while being checked. Check again, for a large store preferably when no scavenge runs.`,
      { place: objects.place },
    );
  }
}

/**
 * The store for reading large files: long ranges as several requests at once, and what is asked for and not there is
 * noted.
 */
function watched(objects: ObjectStore, lost: Set<string>): ObjectStore {
  const get: ObjectStore['get'] = async (key, options = {}) => {
    const { from = 0, length } = options;
    if (length === undefined || length <= FETCH_BYTES) return noted(key, await objects.get(key, options));
    const out = new Uint8Array(length);
    let isThere = true;
    let end = 0;
    await inParallel(Math.ceil(length / FETCH_BYTES), FETCHES_MAX, async (i) => {
      const at = i * FETCH_BYTES;
      const bytes = await objects.get(key, { ...options, from: from + at, length: Math.min(FETCH_BYTES, length - at) });
      if (bytes === null) isThere = false;
      else out.set(bytes, at);
      end = Math.max(end, at + (bytes?.length ?? 0));
    });
    return noted(key, isThere ? out.subarray(0, end) : null);
  };
  const noted = (key: string, bytes: Uint8Array | null): Uint8Array | null => {
    if (bytes === null && key.startsWith(FILES.prefix)) lost.add(key);
    return bytes;
  };
  return {
    place: objects.place,
    get,
    head: (...args) => objects.head(...args),
    list: (...args) => objects.list(...args),
    close: () => objects.close(),
    put: refused,
    create: refused,
    upload: refused,
    remove: refused,
  };
}

async function refused(): Promise<never> {
  throw new SkuaError('io_error', 'Whoever checks a store changes nothing in it: this is a defect.');
}
