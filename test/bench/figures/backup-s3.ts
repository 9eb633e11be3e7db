import { createReadStream, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { CompletedPart } from '@aws-sdk/client-s3';
import { openObjects } from '../../../infra/objects/open-objects.ts';
import { s3ForTests } from '../../support/s3/s3-for-tests.ts';
import type { S3ForTests } from '../../support/s3/s3-for-tests.ts';
import { alternate, row } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { backUp, openBenchRepository, secondsOf, sourceOf } from '../backups.ts';
import { halfDeletedLog } from '../scavenge-data.ts';

/** As an upload of ours does it: so many parts of this size under way at once. */
const PARTS_AT_ONCE = 4;
const PART_BYTES = 8_388_608;

export const backupS3: Figure = {
  name: 'backup-s3',
  how: "A full backup, without compression, of a directory of two chunks of 64 MiB to a bucket of a local S3 server, and the upload of one chunk file alone, beside the multipart upload of the same file by the SDK's own commands in the same process, four parts of 8 MiB at once. Server, backup and limit share the machine; objects are removed in between.",
  async run(settings) {
    const folder = join(settings.folder, 'backup-s3');
    await halfDeletedLog(folder, 2, settings.scavengeChunkBytes / 4, settings.say);
    const s3 = await s3ForTests();
    const client = new S3Client({ endpoint: s3.endpoint, region: s3.region, forcePathStyle: true });
    const chunk = join(folder, 'chunk-000000.000000');
    const megabytes = statSync(chunk).size / 1e6;
    let number = 0;
    const limit = async (): Promise<number> => {
      const rate = megabytes / (await secondsOf(() => uploadBySdk(client, s3.bucket, chunk)));
      await client.send(new DeleteObjectCommand({ Bucket: s3.bucket, Key: 'limit' }));
      return rate;
    };
    const upload = async (): Promise<number> => {
      const objects = await openObjects(s3.place('upload'));
      const rate =
        megabytes /
        (await secondsOf(() =>
          objects.upload('file', statSync(chunk).size, createReadStream(chunk, { highWaterMark: 1_048_576 })),
        ));
      await objects.remove(['file']);
      await objects.close();
      return rate;
    };
    const full = async (): Promise<number> => {
      const place = s3.place(`backup-${number++}`);
      const repository = await openBenchRepository(place, 'off');
      const source = await sourceOf(folder);
      let bytes = 0;
      const seconds = await secondsOf(async () => {
        bytes = (await backUp(repository, source)).report.bytesStored;
      });
      await source.release();
      await repository.close();
      await removeAll(place);
      return bytes / 1e6 / seconds;
    };
    try {
      await limit();
      await upload();
      return [
        row(
          'upload to a local S3 server',
          'MB/s',
          await alternate(settings.windows, limit, upload),
          { kind: 'at least', value: 0.8 },
          [`the server is ${s3.kind}`],
        ),
        row(
          'full backup to a local S3 server',
          'MB/s',
          await alternate(settings.windows, limit, full),
          { kind: 'at least', value: 0.8 },
          ['of its time, a part goes into the digests that name the objects'],
        ),
      ];
    } finally {
      client.destroy();
      await s3.close();
    }
  },
};

async function removeAll(place: ReturnType<S3ForTests['place']>): Promise<void> {
  const objects = await openObjects(place);
  for (let page = await objects.list(''); page.objects.length > 0; page = await objects.list(''))
    await objects.remove(page.objects.map(({ key }) => key));
  await objects.close();
}

async function uploadBySdk(client: S3Client, bucket: string, path: string): Promise<void> {
  const at = { Bucket: bucket, Key: 'limit' };
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(at));
  const file = await open(path);
  const { size } = await file.stat();
  const count = Math.ceil(size / PART_BYTES);
  const parts: CompletedPart[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const part = next++;
      const body = new Uint8Array(Math.min(PART_BYTES, size - part * PART_BYTES));
      await file.read(body, 0, body.length, part * PART_BYTES);
      const { ETag } = await client.send(new UploadPartCommand({ ...at, UploadId, PartNumber: part + 1, Body: body }));
      parts[part] = { PartNumber: part + 1, ETag };
    }
  };
  await Promise.all(Array.from({ length: PARTS_AT_ONCE }, worker));
  await file.close();
  await client.send(new CompleteMultipartUploadCommand({ ...at, UploadId, MultipartUpload: { Parts: parts } }));
}
