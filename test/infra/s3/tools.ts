import { isSkuaError } from '../../../core/base/errors.ts';
import type { SkuaError } from '../../../core/base/errors.ts';
import type { Clock } from '../../../core/ports/clock.ts';
import type { ObjectLocation, ObjectStore } from '../../../core/ports/object-store.ts';
import { openObjects } from '../../../infra/objects/open-objects.ts';
import type { S3ObjectsOptions } from '../../../infra/s3/s3-objects.ts';
import { InProcessS3 } from '../../support/s3/in-process-s3.ts';

export const BUCKET = 'bucket';
export const SECRET = 'a-secret-that-no-message-may-show';

/** Time that passes only by sleeping, and then at once. */
export class SleepingClock implements Clock {
  readonly sleeps: number[] = [];
  #now = 1_700_000_000_000;
  nowMs(): number {
    return this.#now;
  }
  monotonicMs(): number {
    return this.#now;
  }
  async sleep(ms: number): Promise<void> {
    this.sleeps.push(ms);
    this.#now += ms;
  }
  async yield(): Promise<void> {}
}

export interface Bench {
  readonly s3: InProcessS3;
  readonly clock: SleepingClock;
  readonly objects: ObjectStore;
  open(place?: Partial<Extract<ObjectLocation, { kind: 's3' }>>, options?: S3ObjectsOptions): Promise<ObjectStore>;
  close(): Promise<void>;
}

/** A server in this process with one bucket, and a client whose waits take no time. */
export async function startBench(): Promise<Bench> {
  process.env['AWS_ACCESS_KEY_ID'] = 'access-key';
  process.env['AWS_SECRET_ACCESS_KEY'] = SECRET;
  const s3 = await InProcessS3.start();
  s3.state.buckets.set(BUCKET, new Map());
  const clock = new SleepingClock();
  const opened: ObjectStore[] = [];
  const open: Bench['open'] = async (place = {}, options = {}) => {
    const objects = await openObjects(
      { kind: 's3', bucket: BUCKET, prefix: 'p', endpoint: s3.endpoint, region: 'us-east-1', ...place },
      { s3: { clock, random: () => 1, ...options } },
    );
    opened.push(objects);
    return objects;
  };
  return {
    s3,
    clock,
    open,
    objects: await open(),
    close: async () => {
      for (const objects of opened) await objects.close();
      await s3.close();
    },
  };
}

export async function errorOf(work: Promise<unknown>): Promise<SkuaError> {
  try {
    await work;
  } catch (error) {
    if (isSkuaError(error)) return error;
    throw error;
  }
  throw new Error('It did not fail.');
}

export const text = (value: string): Uint8Array => new TextEncoder().encode(value);

export async function* pieces(sizeBytes: number, pieceBytes = 1_048_576): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < sizeBytes; at += pieceBytes)
    yield new Uint8Array(Math.min(pieceBytes, sizeBytes - at)).fill(at / pieceBytes);
}
