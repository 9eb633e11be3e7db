import { isSkuaError, SkuaError } from '../../base/errors.ts';
import { CHUNK_SIZE_MAX_BYTES, CHUNK_SIZE_MIN_BYTES } from '../../log/format/chunk-format.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import { CHUNK_SIZE_DEFAULT_BYTES, type ObjectLogOptions, type ObjectWorld } from '../api.ts';
import { newUuid, PROBE_PREFIX } from '../format/object-keys.ts';
import { createManifest, newestManifest, type ObjectManifest } from '../format/manifest.ts';

/** Creates of one key that race in a probe; exactly one may win. */
const PROBE_CREATES = 8;
const PROBES_MAX = 5;

/**
 * The newest manifest of the store under the prefix, which is created where there is none, and is marked as a cluster's
 * where that is asked for. Throws `prefix_unsuitable`, and `storage_unreachable` where there is none and `mustExist`
 * says that there was one.
 */
export async function openPrefix(world: ObjectWorld, options: ObjectLogOptions): Promise<ObjectManifest> {
  const { objects, digests } = world;
  const newest = await newestManifest(objects, digests);
  if (newest !== null) return asAsked(world, options, newest);
  if (options.mustExist === true) throw gone(objects);
  const chunkSizeBytes = options.chunkSizeBytes ?? CHUNK_SIZE_DEFAULT_BYTES;
  if (
    !Number.isInteger(chunkSizeBytes) ||
    chunkSizeBytes < CHUNK_SIZE_MIN_BYTES ||
    chunkSizeBytes > CHUNK_SIZE_MAX_BYTES
  ) {
    throw new SkuaError(
      'bad_option',
      `chunkSizeBytes is ${chunkSizeBytes}; it must be a whole number from ${CHUNK_SIZE_MIN_BYTES} to ${CHUNK_SIZE_MAX_BYTES}.`,
      { option: 'chunkSizeBytes', value: chunkSizeBytes },
    );
  }
  await objects.begin?.();
  await probe(world);
  const first: ObjectManifest = {
    format: 1,
    number: 1,
    storeId: newUuid(world.ids),
    writtenMs: Math.floor(world.clock.nowMs()),
    chunkSizeBytes,
    boundary: 1,
    logEnd: 0,
    endsChunk: false,
    chunks: [],
    ongoing: null,
    files: [],
    dropped: [],
    scavenge: null,
    ...(options.isCluster === true && { cluster: true }),
  };
  const { newest: there, unknown } = await createAndLook(world, first);
  if (there !== null) return asAsked(world, options, there);
  if (unknown === null) throw unsuitable(objects, 'a manifest was created or refused, but none is there');
  // The process that opens it next finds a whole prefix or none.
  throw new SkuaError(
    'storage_unreachable',
    `${objects.place} did not answer while the store was created: try again when it works.`,
    {},
    unknown,
  );
}

/** The newest manifest behind a create; null where none was found. */
interface Looked {
  readonly newest: ObjectManifest | null;
  /** It is not known what became of the create. */
  readonly unknown: SkuaError | null;
}

/**
 * Creates a manifest, unless there is one of its number. Which one counts says the newest one alone: another process
 * may have taken the number in the same moment, or long before, and then ours stands in the place of one that has been
 * swept since.
 */
export async function createAndLook(
  world: Pick<ObjectWorld, 'objects' | 'clock' | 'digests'>,
  manifest: ObjectManifest,
): Promise<Looked> {
  let unknown: SkuaError | null = null;
  try {
    await createManifest(world, manifest);
  } catch (error) {
    if (!isSkuaError(error, 'outcome_unknown')) throw error;
    unknown = error;
  }
  const newest = await newestManifest(world.objects, world.digests).catch((error: unknown) => {
    if (unknown === null) throw error;
    return null;
  });
  return { newest, unknown };
}

/** Marks that may be tried, each of which another manifest has overtaken. */
const MARKS_MAX = 20;

/**
 * Says that the log is a cluster's, in a manifest of its own with the files of the one before: the tick that is under
 * way then is overtaken by it, and those that follow know it.
 */
async function asAsked(
  world: ObjectWorld,
  { isCluster = false }: ObjectLogOptions,
  newest: ObjectManifest,
): Promise<ObjectManifest> {
  let base = newest;
  for (let tries = 0; isCluster && base.cluster !== true; tries++) {
    if (tries === MARKS_MAX)
      throw new SkuaError(
        'too_busy',
        `Ticks of ${world.objects.place} were faster ${MARKS_MAX} times in a row: start the member again.`,
        { limit: MARKS_MAX },
      );
    const { newest: there, unknown } = await createAndLook(world, {
      ...base,
      number: base.number + 1,
      writtenMs: Math.floor(world.clock.nowMs()),
      cluster: true,
    });
    if (there === null) throw unknown ?? gone(world.objects);
    base = there;
  }
  return base;
}

/**
 * All consistency rests on conditional creates, and a server that ignores the condition answers as if all were well: so
 * it is tried out.
 */
export async function probe(world: Pick<ObjectWorld, 'objects' | 'ids'>): Promise<void> {
  const { objects, ids } = world;
  for (let tries = 1; ; tries++) {
    const key = PROBE_PREFIX + newUuid(ids);
    const replies = await Promise.allSettled(
      Array.from({ length: PROBE_CREATES }, (_, i) => objects.create(key, Uint8Array.of(i))),
    );
    let created = 0;
    let unknown = 0;
    for (const reply of replies) {
      if (reply.status === 'fulfilled') created += reply.value === 'created' ? 1 : 0;
      else if (isSkuaError(reply.reason, 'outcome_unknown')) unknown++;
      else throw reply.reason;
    }
    // A caller that is told that it was late may have won: the reply of a create can be lost below the store, and its
    // repeat finds its own work.
    const there = created === 0 ? await objects.get(key) : null;
    await objects.remove([key]);
    if (created > 1)
      throw unsuitable(objects, `${created} of ${PROBE_CREATES} conditional creates of one object succeeded`);
    // With a lost reply it can't be told that none won.
    if (created === 1) return;
    if (unknown === 0 && there === null) throw unsuitable(objects, 'no conditional create of a new object succeeded');
    if (tries === PROBES_MAX)
      throw new SkuaError(
        'storage_unreachable',
        `${objects.place} does not answer conditional creates: try again when it works.`,
        {},
      );
  }
}

function unsuitable(objects: ObjectStore, what: string): SkuaError {
  return new SkuaError(
    'prefix_unsuitable',
    `${objects.place} can't hold a store: ${what}. Use a server that supports If-None-Match on PUT.`,
    { place: objects.place },
  );
}

function gone({ place }: ObjectStore): SkuaError {
  return new SkuaError(
    'storage_unreachable',
    `The log that was in ${place} is gone: the place was emptied or replaced. A log is never recreated in place of a lost one. Restore it, or start a new log from a replica with \`skua cluster reset\`.`,
    { place },
  );
}
