import { BlockCache } from '../cache/cache.ts';
import { SkuaError } from '../base/errors.ts';
import { ChunkMap } from '../log/chunk-table/chunk-table.ts';
import type { Ids } from '../ports/ids.ts';
import { streamHasher } from '../base/stream-hash.ts';
import type { EventStore, StoreWrite } from '../streams/api.ts';
import { layer, performWrite } from '../streams/layer/layer.ts';
import { createEventStore, type EventStoreInternals } from '../streams/streams.ts';
import {
  CACHE_DEFAULT_BYTES,
  COMMIT_ATTEMPTS_DEFAULT_MAX,
  COMMIT_DEADLINE_DEFAULT_MS,
  FRESH_DEFAULT_MS,
  ID_LOOKBACK_EVENTS,
  INDEX_CACHE_DEPTH_DEFAULT,
  RECENT_IDS,
  REMOVE_AFTER_DEFAULT_MS,
  TAIL_BYTES_MAX,
  TAIL_COMMITS_MAX,
  type ObjectFigures,
  type ObjectInstance,
  type ObjectLogOptions,
  type ObjectWorld,
} from './api.ts';
import { openPrefix } from './prefix/prefix.ts';
import { whyAnotherLog } from './head/head.ts';
import { stampOf } from '../ports/stamp.ts';
import { ObjectCommitLog } from './commit-log/commit-log.ts';
import { ViewHead } from './view/view-head.ts';
import { Poller, Refresher } from './refresh/refresh.ts';
import { ViewAttributes } from './view/view-attributes.ts';
import { type ObjectView, ViewIndex, ViewLogReader } from './view/view.ts';

/**
 * Opens the store of one process over a bucket, which is created where there is none. Costs a LIST and a GET for the
 * manifest, a LIST for the tail and a GET for each 128 small commits in it; index and chunks are opened when they are
 * first read.
 */
export async function openObjectStore(world: ObjectWorld, options: ObjectLogOptions = {}): Promise<ObjectInstance> {
  const freshMs = options.freshMs ?? FRESH_DEFAULT_MS;
  const removeAfterMs = options.removeAfterMs ?? REMOVE_AFTER_DEFAULT_MS;
  if (!(freshMs > 0 && removeAfterMs >= 2 * freshMs)) {
    throw new SkuaError(
      'bad_option',
      `removeAfterMs is ${removeAfterMs} and freshMs ${freshMs}: the first must be at least twice the second, or a writer that stood still could write where something was removed.`,
      { freshMs, removeAfterMs },
    );
  }
  const at = stampOf(world.clock);
  const cache = new BlockCache(options.cacheBytes ?? CACHE_DEFAULT_BYTES);
  const cacheDepth = options.indexCacheDepth ?? INDEX_CACHE_DEPTH_DEFAULT;
  const { tailCommitsMax = TAIL_COMMITS_MAX, tailBytesMax = TAIL_BYTES_MAX } = options;
  const manifest = await openPrefix(world, options);
  const head = new ViewHead(
    { world, cache, hasher: streamHasher, cacheDepth, freshMs, tailCommitsMax, tailBytesMax },
    manifest,
    at,
  );
  const refresher = new Refresher(head);
  const commitLog = new ObjectCommitLog(head, refresher, {
    attemptsMax: options.commitAttemptsMax ?? COMMIT_ATTEMPTS_DEFAULT_MAX,
    deadlineMs: options.commitDeadlineMs ?? COMMIT_DEADLINE_DEFAULT_MS,
  });
  const { clock, ids, log, meter } = world;
  const internals = createEventStore({
    reader: new ViewLogReader(head),
    commitLog,
    logId: manifest.storeId,
    index: new ViewIndex(head, streamHasher),
    attributes: new ViewAttributes(head),
    clock,
    ids,
    log,
    meter,
    options: { recentIds: RECENT_IDS, idLookbackEvents: ID_LOOKBACK_EVENTS, ...options.streams },
  });
  head.listener = internals;
  internals.forgetStreams(head.view.table.end);
  const forget =
    world.objects.recognise?.((there) => whyAnotherLog(there, world.digests, () => head.knownLog)) ?? (() => {});
  try {
    // A manifest whose table of marks is gone is an old one.
    if (!(await head.prepare(manifest))) await refresher.freshen();
    head.mustKnowMarks();
    await refresher.catchUp();
  } catch (error) {
    forget();
    throw error;
  }
  return new Instance(head, refresher, internals, cache, new Poller(refresher, clock, log), ids, forget);
}

class Instance implements ObjectInstance {
  readonly store: EventStore;
  readonly internals: EventStoreInternals;
  readonly chunkSizeBytes: number;
  readonly #head: ViewHead;
  readonly #refresher: Refresher;
  readonly #poller: Poller;
  readonly figures: () => ObjectFigures;
  readonly chunkMap: ChunkMap;
  readonly #forget: () => void;

  constructor(
    head: ViewHead,
    refresher: Refresher,
    internals: EventStoreInternals,
    cache: BlockCache,
    poller: Poller,
    ids: Ids,
    forget: () => void,
  ) {
    this.#forget = forget;
    this.internals = internals;
    this.chunkSizeBytes = head.view.chunkSizeBytes;
    this.store = freshStore(internals, refresher, poller);
    this.#head = head;
    this.#refresher = refresher;
    this.#poller = poller;
    this.figures = () => figuresOf(head.view, cache);
    this.chunkMap = new ChunkMap({ table: () => head.view.table, isCold: true, ids });
  }

  get isCluster(): boolean {
    return this.#head.view.manifest.cluster === true;
  }

  refresh(): Promise<void> {
    return this.#refresher.refresh();
  }

  async close(): Promise<void> {
    await this.#poller.close();
    await this.internals.close();
    await this.#head.view.retire(null);
    this.#forget();
  }
}

function figuresOf(
  { manifest, entries, attributes, table, lastPosition }: ObjectView,
  cache: BlockCache,
): ObjectFigures {
  const { hits, misses, usedBytes, capacityBytes } = cache;
  const { tables, mem } = entries;
  return {
    indexCheckpoint: tables.length === 0 ? -1 : manifest.logEnd,
    lastCommitPosition: lastPosition,
    indexTables: tables.length,
    indexTableEntries: tables.reduce((sum, one) => sum + one.entries, 0),
    indexEntriesInMemory: mem.count,
    attributes: attributes.status(table.end),
    chunks: [...table.all()].length,
    cache: { hits, misses, usedBytes, capacityBytes },
  };
}

/**
 * The store over a log that others write to: every read asks for the next commit first, so that it sees what any writer
 * had acknowledged before, and nothing is answered from memory alone. Writes need not ask: if another writer was first
 * the commit itself says so.
 */
function freshStore(internals: EventStoreInternals, refresher: Refresher, poller: Poller): EventStore {
  const perform = (write: StoreWrite) => performWrite(internals, write);
  return layer(
    {
      get end() {
        return internals.end;
      },
      get redactions() {
        return internals.redactions;
      },
    },
    {
      write: (write) => refresher.again(perform, write),
      read: async (call) => {
        await refresher.refresh();
        return refresher.again(call, internals);
      },
      follow: (call) => poller.follow(() => call(internals)),
      wait: (call) => poller.during(() => call(internals)),
    },
  );
}
