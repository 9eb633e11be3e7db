import { randomUUID } from 'node:crypto';
import type { CompletedPart } from '@aws-sdk/client-s3';
import { throwIfAborted, uploadPartBytes, wrongSize } from '../../core/ports/object-store.ts';
import { sending } from './s3-client.ts';
import type { S3Connection } from './s3-client.ts';

/** Parts on their way at the same time; one more is being filled. */
const PARTS_AT_ONCE = 4;
/** An upload that began this long ago, in milliseconds, is no longer at work: 7 days. */
const LEFTOVER_AFTER_MS = 604_800_000;
/** Which upload an object came from: distinguishes a completion whose reply was lost from one that never happened. */
const UPLOAD_ID = 'skua-upload';

interface MultipartJob {
  readonly connection: S3Connection;
  /** Runs a request, repeated as need be. */
  readonly run: <T>(attempt: () => Promise<T>, signal?: AbortSignal) => Promise<T>;
  /** Of the object in messages, and in the bucket. */
  readonly key: string;
  readonly fullKey: string;
  readonly sizeBytes: number;
  readonly content: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal | undefined;
}

/**
 * Uploads a large object in parts, several at a time, each with a checksum where the server knows them. The object
 * appears when all are there; a failed upload is taken back.
 */
export async function uploadInParts(job: MultipartJob): Promise<void> {
  const { sdk, client, target } = job.connection;
  const at = { Bucket: target.bucket, Key: job.fullKey };
  const nonce = randomUUID();
  const begun = await job.run(
    () =>
      client.send(
        new sdk.CreateMultipartUploadCommand({ ...at, ...checksumOf(job), Metadata: { [UPLOAD_ID]: nonce } }),
        sending(job.signal),
      ),
    job.signal,
  );
  const upload = { ...at, UploadId: begun.UploadId! };
  let isComplete = false;
  try {
    const parts = await sendParts(job, upload);
    await complete(job, upload, parts, nonce);
    isComplete = true;
  } finally {
    // Nothing is lost when this fails: parts that were never put together are no object.
    if (!isComplete) await job.run(() => client.send(new sdk.AbortMultipartUploadCommand(upload))).catch(() => {});
  }
}

function checksumOf({ connection }: MultipartJob): { ChecksumAlgorithm?: 'CRC32' } {
  return connection.hasChecksums ? { ChecksumAlgorithm: 'CRC32' } : {};
}

type UploadRef = { readonly Bucket: string; readonly Key: string; readonly UploadId: string };

async function sendParts(job: MultipartJob, upload: UploadRef): Promise<CompletedPart[]> {
  const partBytes = uploadPartBytes(job.sizeBytes);
  const parts: CompletedPart[] = [];
  const free: Uint8Array<ArrayBuffer>[] = [];
  const underWay = new Set<Promise<void>>();
  const failing = new AbortController();
  const signal = job.signal === undefined ? failing.signal : AbortSignal.any([job.signal, failing.signal]);
  let failure: { readonly error: unknown } | undefined;
  const begin = (buffer: Uint8Array<ArrayBuffer>, length: number) => {
    const number = parts.length + 1;
    parts.push({ PartNumber: number });
    const sending = sendPart(job, upload, number, buffer.subarray(0, length), signal)
      .then(
        (part) => {
          parts[number - 1] = part;
        },
        (error: unknown) => {
          failure ??= { error };
          failing.abort();
        },
      )
      .finally(() => {
        underWay.delete(sending);
        free.push(buffer);
      });
    underWay.add(sending);
  };
  try {
    let total = 0,
      filled = 0;
    let buffer = new Uint8Array(partBytes);
    for await (const piece of job.content) {
      total += piece.length;
      if (total > job.sizeBytes) throw wrongSize(job.key, job.sizeBytes, total);
      for (let done = 0; done < piece.length;) {
        const count = Math.min(piece.length - done, partBytes - filled);
        buffer.set(piece.subarray(done, done + count), filled);
        filled += count;
        done += count;
        if (filled < partBytes) continue;
        begin(buffer, filled);
        filled = 0;
        if (underWay.size >= PARTS_AT_ONCE) await Promise.race(underWay);
        if (failure !== undefined) throw failure.error;
        buffer = free.pop() ?? new Uint8Array(partBytes);
      }
      throwIfAborted(job.signal, job.key);
    }
    if (total < job.sizeBytes) throw wrongSize(job.key, job.sizeBytes, total);
    if (filled > 0) begin(buffer, filled);
    await Promise.all(underWay);
    if (failure !== undefined) throw failure.error;
    return parts;
  } finally {
    failing.abort();
    await Promise.allSettled(underWay);
  }
}

async function sendPart(
  job: MultipartJob,
  upload: UploadRef,
  number: number,
  body: Uint8Array,
  signal: AbortSignal,
): Promise<CompletedPart> {
  const { sdk, client } = job.connection;
  const sent = await job.run(
    () =>
      client.send(
        new sdk.UploadPartCommand({
          ...upload,
          PartNumber: number,
          Body: body,
          ContentLength: body.length,
          ...checksumOf(job),
        }),
        sending(signal),
      ),
    signal,
  );
  return {
    PartNumber: number,
    ETag: sent.ETag,
    ...(job.connection.hasChecksums && sent.ChecksumCRC32 !== undefined && { ChecksumCRC32: sent.ChecksumCRC32 }),
  };
}

/** A repeat after a lost reply finds the upload gone; then the object itself says whether it is ours. */
async function complete(job: MultipartJob, upload: UploadRef, parts: CompletedPart[], nonce: string): Promise<void> {
  const { sdk, client, target } = job.connection;
  let isRepeat = false;
  await job.run(async () => {
    try {
      await client.send(
        new sdk.CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts: parts } }),
        sending(job.signal),
      );
    } catch (error) {
      if (!isRepeat) {
        isRepeat = true;
        throw error;
      }
      const found = await client
        .send(new sdk.HeadObjectCommand({ Bucket: target.bucket, Key: job.fullKey }), sending(job.signal))
        .catch(() => null);
      if (found?.Metadata?.[UPLOAD_ID] !== nonce) throw error;
    }
  }, job.signal);
}

/** Aborts uploads under the prefix that will never be completed, up to a page of them. */
export async function abortLeftovers(
  { sdk, client, target }: S3Connection,
  prefix: string,
  nowMs: number,
): Promise<void> {
  const { Uploads = [] } = await client.send(
    new sdk.ListMultipartUploadsCommand({ Bucket: target.bucket, Prefix: prefix }),
  );
  for (const { Key, UploadId, Initiated } of Uploads) {
    if (Initiated === undefined || nowMs - Initiated.getTime() < LEFTOVER_AFTER_MS) continue;
    await client.send(new sdk.AbortMultipartUploadCommand({ Bucket: target.bucket, Key: Key!, UploadId: UploadId! }));
  }
}
