import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from 'aws-cdk-lib/aws-s3';
import type { Construct } from 'constructs';
import { refuseOverwrites } from './permissions.ts';

/** An upload in parts that was never finished costs like an object, and no tick works for so long. */
const UPLOAD_DAYS = 2;

/**
 * The bucket with all data. It stays when the stack is deleted. No versions: what a scavenge or a tick removes must be
 * gone, and the log is never overwritten.
 */
export function createBucket(scope: Construct, prefix: string): Bucket {
  const bucket = new Bucket(scope, 'Data', {
    encryption: BucketEncryption.S3_MANAGED,
    blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
    objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
    enforceSSL: true,
    minimumTLSVersion: 1.2,
    removalPolicy: RemovalPolicy.RETAIN,
    lifecycleRules: [{ id: 'abort-old-uploads', abortIncompleteMultipartUploadAfter: Duration.days(UPLOAD_DAYS) }],
  });
  refuseOverwrites(bucket, prefix);
  return bucket;
}
