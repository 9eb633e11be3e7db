import { expect, it } from 'vitest';
import { type Anchor, ANCHOR_FORMAT, parseAnchor } from '../../core/integrity/format/chain-layout.ts';
import { objectPlace } from '../../infra/anchors/anchor-locations.ts';
import { openS3 } from '../../infra/s3/s3-objects.ts';
import { s3ForTests } from '../support/s3/s3-for-tests.ts';

const HOUR_MS = 3_600_000;
const ANCHOR: Anchor = {
  format: ANCHOR_FORMAT,
  chain: 'ab'.repeat(16),
  chunkSizeBytes: 65_536,
  position: 1_234,
  link: 'cd'.repeat(32),
  receipts: 2,
  receiptsHead: 'ef'.repeat(32),
  madeAt: '2026-11-22T00:00:00Z',
};

it("an anchor under lock can be neither removed nor let go earlier, and whoever hides it can't replace it", async ({
  skip,
}) => {
  const s3 = await s3ForTests();
  try {
    // What is locked stays for a day: only on a server that goes away with the run.
    if (s3.kind !== 'ceph' && s3.kind !== 'localstack')
      skip(`Object lock needs a real S3 server that the tests have started: ${s3.note}`);
    const {
      CreateBucketCommand,
      DeleteObjectCommand,
      GetObjectCommand,
      HeadObjectCommand,
      PutObjectRetentionCommand,
      S3Client,
    } = await import('@aws-sdk/client-s3');
    const client = new S3Client({ endpoint: s3.endpoint, region: s3.region, forcePathStyle: true });
    const Bucket = `${s3.bucket}-locked`;
    await client.send(new CreateBucketCommand({ Bucket, ObjectLockEnabledForBucket: true }));
    const place = objectPlace(
      await openS3({ kind: 's3', bucket: Bucket, prefix: 'anchors', endpoint: s3.endpoint, region: s3.region }),
      1,
      Date.now,
    );
    await place.put(ANCHOR, new AbortController().signal);
    await place.put({ ...ANCHOR, madeAt: 'later' }, new AbortController().signal);
    const Key = `anchors/${ANCHOR.chain}/00000000000000001234-0000000002`;
    const { ObjectLockMode, VersionId } = await client.send(new HeadObjectCommand({ Bucket, Key }));
    expect(ObjectLockMode).toBe('COMPLIANCE');
    await expect(client.send(new DeleteObjectCommand({ Bucket, Key, VersionId }))).rejects.toMatchObject({
      name: 'AccessDenied',
    });
    await expect(
      client.send(
        new PutObjectRetentionCommand({
          Bucket,
          Key,
          VersionId,
          Retention: { Mode: 'COMPLIANCE', RetainUntilDate: new Date(Date.now() + HOUR_MS) },
        }),
      ),
    ).rejects.toMatchObject({ name: 'AccessDenied' });
    await client.send(new DeleteObjectCommand({ Bucket, Key }));
    const kept = await client.send(new GetObjectCommand({ Bucket, Key, VersionId }));
    expect(parseAnchor(await kept.Body!.transformToString(), Key)).toEqual(ANCHOR);
    await place.close();
    client.destroy();
  } finally {
    await s3.close();
  }
});
