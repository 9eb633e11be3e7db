import { SkuaError } from '../../base/errors.ts';
import { shapeOf } from '../../index/format/table-scan.ts';
import { isOfKind } from '../../ports/object-kinds.ts';
import { listAll, type ObjectInfo } from '../../ports/object-store.ts';
import type { StorageFile } from '../../ports/storage.ts';
import {
  type ErasureFinding,
  type ErasureProgress,
  type ErasureSummary,
  type SearchedFile,
  searchErased,
} from '../../scavenge/erasure/erasure.ts';
import type { FileFacts } from '../../scavenge/api.ts';
import type { StreamHasher } from '../../base/stream-hash.ts';
import { timestampText } from '../../base/time.ts';
import { FRESH_DEFAULT_MS, type ObjectLogOptions, type ObjectWorld, REMOVE_AFTER_DEFAULT_MS } from '../api.ts';
import { COMMIT_HEADER_BYTES, decodeCommitObject } from '../format/commit-object.ts';
import { commitNumberOf, FILES, manifestNumberOf } from '../format/object-keys.ts';
import { newestManifest, type ObjectManifest, TABLE_NAME } from '../format/manifest.ts';
import { ATTRIBUTE_TABLE_NAME } from '../format/manifest-attributes.ts';
import { agesOf, LEFTOVERS_AFTER_MS, listManifests, tracesMs } from '../sweep/sweep.ts';
import { STATE_PATH } from '../tick/scavenge-slice.ts';
import { ReadAhead } from '../files/read-ahead.ts';

/**
 * Lists of the objects in one search: the first, and for what came meanwhile. Beside busy writers there is always more.
 */
const LISTS_MAX = 3;

interface CheckErasureInObjectsOptions {
  readonly world: Pick<ObjectWorld, 'objects' | 'digests' | 'clock'>;
  readonly options?: ObjectLogOptions;
  /** As `checkErasure` has them. */
  readonly events?: readonly string[];
  readonly stream?: string;
  readonly hasher?: StreamHasher;
  readonly findingsMax?: number;
}

export interface ObjectErasureFinding extends ErasureFinding {
  /** In an object that waits for its removal: when that has come at the latest, as long as ticks run. */
  readonly goesBy?: string;
}

export interface ObjectErasureSummary extends ErasureSummary {
  /**
   * Traces in objects that wait for their removal, as far as they were told, and when the last of these has gone at the
   * latest.
   */
  readonly waiting: number;
  readonly goneBy: string | null;
}

/**
 * Looks for what remains of events or of a stream in all objects of a store, whatever they are: files in force,
 * commits, and what waits for its removal. It only reads, beside writers. Throws as `checkErasure` does.
 */
export async function* checkErasureInObjects({
  world,
  options = {},
  ...asked
}: CheckErasureInObjectsOptions): AsyncGenerator<ObjectErasureFinding | ErasureProgress, ObjectErasureSummary> {
  const objects = new SearchedObjects(world, options);
  await objects.refresh();
  const search = searchErased({ ...asked, list: () => objects.list() });
  let waiting = 0;
  let goneBy: string | null = null;
  for (;;) {
    const next = await search.next();
    if (next.done === true) return { ...next.value, waiting, goneBy };
    const said = next.value;
    if (said.kind === 'progress') {
      yield said;
      continue;
    }
    const goesBy = objects.goesBy(said);
    yield goesBy === undefined ? said : { ...said, goesBy };
    if (said.kind !== 'trace' || goesBy === undefined) continue;
    waiting++;
    if (goneBy === null || goesBy > goneBy) goneBy = goesBy;
  }
}

class SearchedObjects {
  readonly #world: CheckErasureInObjectsOptions['world'];
  readonly #options: ObjectLogOptions;
  #manifest: ObjectManifest | null = null;
  #names = new Map<string, string>();
  #times = new Map<number, number>();
  #lists = 0;
  /** By the path that is told: when it goes, and from which offset on what it holds goes. */
  readonly #waiting = new Map<string, { readonly from: number; readonly by: string }>();

  constructor(world: CheckErasureInObjectsOptions['world'], options: ObjectLogOptions) {
    this.#world = world;
    this.#options = options;
  }

  goesBy({ file, offset }: ErasureFinding): string | undefined {
    const waiting = this.#waiting.get(file);
    return waiting !== undefined && offset >= waiting.from ? waiting.by : undefined;
  }

  /** Loads the newest manifest. */
  async refresh(): Promise<void> {
    const { objects, digests } = this.#world;
    const manifest = await newestManifest(objects, digests);
    if (manifest === null)
      throw new SkuaError('file_not_found', `There is no store under ${objects.place}: it holds no manifest.`, {
        place: objects.place,
      });
    this.#manifest = manifest;
    const { chunks, ongoing, files } = manifest;
    this.#names = new Map([...chunks, ...files].flatMap(({ key, name }) => (key === null ? [] : [[key, name]])));
    for (const { key } of ongoing?.segments ?? []) this.#names.set(key, ongoing!.name);
    this.#times = new Map(
      (await listManifests(objects)).map(({ key, modifiedMs }) => [manifestNumberOf(key)!, modifiedMs]),
    );
  }

  async list(): Promise<readonly SearchedFile[]> {
    if (this.#lists++ >= LISTS_MAX) return [];
    if (this.#lists > 1) await this.refresh();
    const { objects } = this.#world;
    const infos: ObjectInfo[] = [];
    for await (const info of listAll(objects, '')) infos.push(info);
    const line = new ReadAhead(objects, infos);
    return infos.map((info) => {
      const name = this.#names.get(info.key);
      const path = name === undefined ? info.key : `${info.key} (${name})`;
      return {
        path: info.key,
        sizeBytes: info.sizeBytes,
        open: async () => line.open(info, path),
        facts: (file) => this.#facts(info, path, name, file),
      };
    });
  }

  async #facts(
    { key, sizeBytes }: ObjectInfo,
    path: string,
    name: string | undefined,
    file: StorageFile,
  ): Promise<FileFacts> {
    const manifest = this.#manifest!;
    const facts = { path, table: null, isDatabase: name === STATE_PATH, leftover: null, dataEnd: Infinity };
    const commit = commitNumberOf(key);
    if (commit !== null) return this.#commitFacts(commit, facts, sizeBytes, file);
    if (name !== undefined)
      return TABLE_NAME.test(name) || ATTRIBUTE_TABLE_NAME.test(name)
        ? { ...facts, table: await shapeOf(path, file) }
        : facts;
    // A stranger's object is never removed.
    if (!isOfKind(FILES, key)) return facts;
    const dropped = manifest.dropped.find((one) => one.key === key);
    if (dropped !== undefined)
      return this.#goes(
        facts,
        0,
        'in an object that a manifest has dropped',
        this.#droppedBy(dropped.by ?? manifest.number),
      );
    return this.#goes(facts, 0, 'in an object that no manifest names', this.#newestMs + 2 * LEFTOVERS_AFTER_MS);
  }

  get #newestMs(): number {
    return this.#times.get(this.#manifest!.number) ?? this.#manifest!.writtenMs;
  }
  get #tracesMs(): number {
    return tracesMs(
      agesOf(this.#options.freshMs ?? FRESH_DEFAULT_MS, this.#options.removeAfterMs ?? REMOVE_AFTER_DEFAULT_MS),
    );
  }

  #droppedBy(manifest: number): number {
    const { erasure } = this.#manifest!;
    if (erasure !== undefined && erasure.goneMs === null && manifest <= erasure.manifest) return erasure.untilMs;
    return (this.#times.get(manifest) ?? this.#newestMs) + this.#tracesMs;
  }

  async #commitFacts(number: number, facts: FileFacts, sizeBytes: number, file: StorageFile): Promise<FileFacts> {
    const { boundary } = this.#manifest!;
    if (number < boundary)
      return this.#goes(
        facts,
        0,
        'in a commit that is in files by now',
        this.#droppedBy(this.#manifest!.erasure?.manifest ?? this.#manifest!.number),
      );
    const { commit, carried } = decodeCommitObject(
      facts.path,
      number,
      await file.read(0, sizeBytes),
      this.#world.digests,
    );
    // Copies of commits that are in the tail themselves are as much in force as those.
    let own = COMMIT_HEADER_BYTES + commit.records.length;
    for (const one of carried) if (one.number >= boundary) own += COMMIT_HEADER_BYTES + one.records.length;
    return this.#goes(
      { ...facts, dataEnd: own },
      own,
      'in copies of earlier commits that are in files by now',
      Math.max(this.#newestMs, this.#world.clock.nowMs()) + this.#tracesMs,
    );
  }

  /** What is behind `from` waits for the removal of the object. */
  #goes(facts: FileFacts, from: number, where: string, byMs: number): FileFacts {
    const by = timestampText(Math.floor(byMs), 0);
    this.#waiting.set(facts.path, { from, by });
    const text = `${where}, to be removed by ${by}`;
    return from === 0 ? { ...facts, leftover: text } : { ...facts, behind: text };
  }
}
