import { readdir } from 'node:fs/promises';
import * as path from 'node:path';
import { isSkuaError } from '../../core/base/errors.ts';
import type { ObjectWorld } from '../../core/shared-log/api.ts';
import { manifestNumberOf } from '../../core/shared-log/format/object-keys.ts';
import { newestManifestNumber } from '../../core/shared-log/format/manifest.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import type { ObjectLocation } from '../../core/ports/object-store.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { nodeDigests } from '../../infra/node-digests.ts';
import { systemIds } from '../../infra/system-ids.ts';
import { openObjects, parseLocation } from '../../infra/objects/open-objects.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import type { Io } from '../../infra/runtime/io.ts';
import { createLog } from '../log/logger.ts';

/** How a store on object storage is reached. */
export interface BucketOptions {
  readonly storage: string | null;
  readonly 's3-endpoint': string | null;
  readonly 's3-region': string | null;
}

/**
 * Where a command that looks at data finds the objects of a store: what `--storage` names, or what was given as a
 * directory and is a bucket, or a directory with the objects of a store in it. Null for a node's data directory, and
 * for what is neither.
 */
export async function objectsAt(given: string | null, wanted: BucketOptions): Promise<ObjectLocation | null> {
  if (wanted.storage !== null) return placeOf(wanted.storage, wanted);
  if (given === null) return null;
  if (/^(?:s3:|[a-z0-9+.-]+:\/\/)/i.test(given)) return placeOf(given, wanted);
  return (await holdsObjects(path.resolve(given))) ? placeOf(given, wanted) : null;
}

function placeOf(given: string, wanted: BucketOptions): ObjectLocation {
  try {
    return parseLocation(given, { endpoint: wanted['s3-endpoint'], region: wanted['s3-region'] });
  } catch (error) {
    if (isSkuaError(error, 'bad_option')) throw new UsageError(error.message);
    throw error;
  }
}

/** Among its manifests a store has one for every moment; a node's directory has none. */
async function holdsObjects(directory: string): Promise<boolean> {
  const names = await readdir(path.join(directory, 'manifest')).catch(() => []);
  return names.some((name) => manifestNumberOf(`manifest/${name}`) !== null);
}

/** Runs `work` on the store that is there, which is not created where there is none, and closes it whatever happens. */
export async function withObjectsAt<T>(
  place: ObjectLocation,
  io: Io,
  work: (world: ObjectWorld) => Promise<T>,
): Promise<T> {
  const objects = await openObjects(place);
  try {
    if ((await newestManifestNumber(objects)) === null) {
      throw new CommandError(
        'store_not_found',
        `There is no store under ${objects.place}. Name the --storage of \`skua start\`: s3://bucket/prefix, or a directory of objects.`,
        EXIT.unreachable,
      );
    }
    return await work({
      objects,
      clock: systemClock,
      ids: systemIds,
      digests: nodeDigests,
      log: createLog(io, 'error'),
      meter: silentMeter,
    });
  } finally {
    await objects.close();
  }
}
