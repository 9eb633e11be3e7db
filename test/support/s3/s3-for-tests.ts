import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { S3Client } from '@aws-sdk/client-s3';
import type { ObjectLocation } from '../../../core/ports/object-store.ts';
import { ceph, fromEnvironment, inProcess, localstack } from './s3-servers.ts';
import type { S3Kind, S3Server } from './s3-servers.ts';

/** The server to use, and no other: `environment`, `localstack`, `ceph` or `in-process`. */
const KIND = 'SKUA_TEST_S3';
/** Folder of the run, in which its processes tell each other what they found out. */
export const RUN_FOLDER = 'SKUA_TEST_S3_RUN';

export interface S3ForTests {
  readonly endpoint: string;
  readonly region: string;
  /** Fresh, for this caller alone. */
  readonly bucket: string;
  readonly kind: S3Kind;
  /** Which server it is, and why no other. */
  readonly note: string;
  /**
   * What a process that is started has to have in its environment: credentials and region. This process has it already.
   */
  readonly env: Readonly<Record<string, string>>;
  /** The bucket, or a prefix in it. */
  place(prefix?: string): ObjectLocation;
  /** Removes the bucket. */
  close(): Promise<void>;
}

const starters: Readonly<Record<S3Kind, (runFolder: string | undefined) => Promise<S3Server>>> = {
  environment: fromEnvironment,
  localstack,
  ceph,
  'in-process': inProcess,
};
const found = new Map<S3Kind | undefined, Promise<{ server: S3Server; note: string }>>();

/**
 * An S3 server with a fresh bucket: the one that the environment names (`S3_ENDPOINT`), else LocalStack where a
 * container engine answers, else Ceph's gateway (root, Debian's packages), else a small server in this process. Says
 * once a run which it is. With `only` it is that one, or an error.
 */
export async function s3ForTests(only = process.env[KIND] as S3Kind | undefined): Promise<S3ForTests> {
  const finding = found.get(only) ?? findServer(only);
  found.set(only, finding);
  const { server, note } = await finding;
  useCredentials(server);
  const bucket = `skua-test-${randomBytes(8).toString('hex')}`;
  const sdk = await import('@aws-sdk/client-s3');
  const client = new sdk.S3Client({ endpoint: server.endpoint, region: server.region, forcePathStyle: true });
  await client.send(new sdk.CreateBucketCommand({ Bucket: bucket }));
  return {
    endpoint: server.endpoint,
    region: server.region,
    bucket,
    kind: server.kind,
    note,
    env: server.env,
    place: (prefix = '') => ({ kind: 's3', bucket, prefix, endpoint: server.endpoint, region: server.region }),
    close: async () => {
      await removeBucket(client, bucket, server.kind);
      client.destroy();
    },
  };
}

async function findServer(only: S3Kind | undefined): Promise<{ server: S3Server; note: string }> {
  const runFolder = process.env[RUN_FOLDER];
  if (only !== undefined && !(only in starters))
    throw new Error(`${KIND} is "${only}": it may be ${Object.keys(starters).join(', ')}.`);
  const reasons: string[] = [];
  for (const kind of only === undefined ? (Object.keys(starters) as S3Kind[]) : [only]) {
    try {
      const before = await failedBefore(runFolder, kind);
      if (before !== null) throw new Error(before);
      const server = await starters[kind](runFolder);
      useCredentials(server);
      if (kind === 'localstack') await provesCreation(server);
      const note = `S3 tests use ${kind} at ${server.endpoint}${reasons.length === 0 ? '' : ` (${reasons.join('; ')})`}`;
      if (kind !== 'in-process' || reasons.length > 0) await sayOnce(runFolder, note);
      return { server, note };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (only !== undefined) throw new Error(`${kind} was asked for, but: ${reason}`, { cause: error });
      reasons.push(`${kind}: ${reason}`);
      if (runFolder !== undefined) await writeFile(join(runFolder, `no-${kind}`), reason).catch(() => {});
    }
  }
  throw new Error(`No S3 server: ${reasons.join('; ')}`);
}

/**
 * The SDK and the processes under test find their credentials where they always look. Each time, since a test that
 * stubs its environment takes what was put there meanwhile away with its own. The server in this process takes any, and
 * must not spoil those of another one.
 */
function useCredentials({ kind, env }: S3Server): void {
  if (kind !== 'in-process' || process.env['AWS_ACCESS_KEY_ID'] === undefined) Object.assign(process.env, env);
}

/** What another process of this run has found out already need not cost its time again. */
async function failedBefore(runFolder: string | undefined, kind: S3Kind): Promise<string | null> {
  return runFolder === undefined ? null : readFile(join(runFolder, `no-${kind}`), 'utf8').catch(() => null);
}

async function sayOnce(runFolder: string | undefined, note: string): Promise<void> {
  const isFirst =
    runFolder === undefined ||
    (await writeFile(join(runFolder, 'said'), note, { flag: 'wx' }).then(
      () => true,
      () => false,
    ));
  if (isFirst) process.stderr.write(`${note}\n`);
}

/** Older images take conditional writes and ignore the condition. */
async function provesCreation(server: S3Server): Promise<void> {
  const sdk = await import('@aws-sdk/client-s3');
  const client = new sdk.S3Client({ endpoint: server.endpoint, region: server.region, forcePathStyle: true });
  const at = { Bucket: `skua-probe-${randomBytes(8).toString('hex')}`, Key: 'k' };
  await client.send(new sdk.CreateBucketCommand(at));
  const put = () =>
    client.send(new sdk.PutObjectCommand({ ...at, Body: 'x', IfNoneMatch: '*' })).then(
      () => 200,
      (error: { $metadata?: { httpStatusCode?: number } }) => error.$metadata?.httpStatusCode,
    );
  const got = [await put(), await put()];
  await removeBucket(client, at.Bucket, server.kind);
  client.destroy();
  if (got[0] !== 200 || got[1] !== 412) throw new Error('it ignores conditions of writes');
}

async function removeBucket(client: S3Client, bucket: string, kind: S3Kind): Promise<void> {
  // The one in this process goes with it.
  if (kind === 'in-process') return;
  const sdk = await import('@aws-sdk/client-s3');
  for (;;) {
    const { Contents = [] } = await client.send(new sdk.ListObjectsV2Command({ Bucket: bucket }));
    if (Contents.length === 0) break;
    await client.send(
      new sdk.DeleteObjectsCommand({
        Bucket: bucket,
        Delete: { Quiet: true, Objects: Contents.map(({ Key }) => ({ Key: Key! })) },
      }),
    );
  }
  const { Uploads = [] } = await client.send(new sdk.ListMultipartUploadsCommand({ Bucket: bucket }));
  for (const { Key, UploadId } of Uploads)
    await client
      .send(new sdk.AbortMultipartUploadCommand({ Bucket: bucket, Key: Key!, UploadId: UploadId! }))
      .catch(() => {});
  await client.send(new sdk.DeleteBucketCommand({ Bucket: bucket }));
}
