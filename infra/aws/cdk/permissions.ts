import { AnyPrincipal, Effect, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import type { Bucket } from 'aws-cdk-lib/aws-s3';

/** The folders of the prefix that a function may create objects in; null for all. */
export type Creates = readonly string[] | null;

/**
 * What every function may do: read below the prefix, and create objects in the folders that it needs. A read of an
 * object that is not there is answered "denied" instead of "absent" to somebody who may not list, so listing is
 * allowed; reads name no prefix, which is why the condition holds only where there is one.
 */
export function grantLog(to: IFunction, bucket: Bucket, prefix: string, creates: Creates): void {
  const objects = (folder: string) => bucket.arnForObjects(`${prefix}/${folder}*`);
  to.addToRolePolicy(new PolicyStatement({ sid: 'ReadObjects', actions: ['s3:GetObject'], resources: [objects('')] }));
  to.addToRolePolicy(new PolicyStatement({
    sid: 'ListPrefix', actions: ['s3:ListBucket'], resources: [bucket.bucketArn], conditions: { StringLikeIfExists: { 's3:prefix': [`${prefix}/*`] } },
  }));
  to.addToRolePolicy(new PolicyStatement({ sid: 'CreateObjects', actions: ['s3:PutObject'], resources: creates === null ? [objects('')] : creates.map((folder) => objects(`${folder}/`)) }));
}

/** What the tick may do besides: remove what a newer manifest no longer names, and give up uploads. */
export function grantRemoval(to: IFunction, bucket: Bucket, prefix: string): void {
  const resources = [bucket.arnForObjects(`${prefix}/*`)];
  to.addToRolePolicy(new PolicyStatement({ sid: 'RemoveObjects', actions: ['s3:DeleteObject', 's3:AbortMultipartUpload'], resources }));
}

/**
 * A commit or a manifest is created once and never replaced, whoever asks: the protocol depends on it, so the bucket
 * itself refuses a write to those folders that is not conditional.
 */
export function refuseOverwrites(bucket: Bucket, prefix: string): void {
  bucket.addToResourcePolicy(new PolicyStatement({
    sid: 'CreateOnly', effect: Effect.DENY, actions: ['s3:PutObject'], principals: [new AnyPrincipal()], resources: [bucket.arnForObjects(`${prefix}/log/*`), bucket.arnForObjects(`${prefix}/manifest/*`)],
    conditions: { Null: { 's3:if-none-match': 'true' } },
  }));
}
