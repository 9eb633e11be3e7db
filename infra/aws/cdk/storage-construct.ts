import {
  Arn,
  ArnFormat,
  Aws,
  CfnCondition,
  CfnParameter,
  Duration,
  Fn,
  RemovalPolicy,
  Stack,
  Token,
} from 'aws-cdk-lib';
import { AnyPrincipal, CfnPolicy, Effect, PolicyDocument, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from 'aws-cdk-lib/aws-s3';
import type { Construct } from 'constructs';

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
    lifecycleRules: [
      { id: 'abort-old-uploads', abortIncompleteMultipartUploadAfter: Duration.days(UPLOAD_DAYS) },
      // Failed logins count for a minute. Ticks remove them too, but not as fast as guesses of passwords make them.
      { id: 'expire-failed-logins', prefix: `${prefix}/failures/`, expiration: Duration.days(1) },
    ],
  });
  refuseOverwrites(bucket, prefix);
  return bucket;
}

/** The folders of the prefix that a function may create objects in; null for all. */
type Creates = readonly string[] | null;

/**
 * What every function may do: read below the prefix, and create objects in the folders that it needs. A read of an
 * object that is not there is answered "denied" instead of "absent" to a caller that may not list, so listing is
 * allowed; reads name no prefix, which is why the condition holds only where there is one.
 */
export function grantLog(to: IFunction, bucket: Bucket, prefix: string, creates: Creates): void {
  const objects = (folder: string) => bucket.arnForObjects(`${prefix}/${folder}*`);
  to.addToRolePolicy(new PolicyStatement({ sid: 'ReadObjects', actions: ['s3:GetObject'], resources: [objects('')] }));
  to.addToRolePolicy(
    new PolicyStatement({
      sid: 'ListPrefix',
      actions: ['s3:ListBucket'],
      resources: [bucket.bucketArn],
      conditions: { StringLikeIfExists: { 's3:prefix': [`${prefix}/*`] } },
    }),
  );
  to.addToRolePolicy(
    new PolicyStatement({
      sid: 'CreateObjects',
      actions: ['s3:PutObject'],
      resources: creates === null ? [objects('')] : creates.map((folder) => objects(`${folder}/`)),
    }),
  );
}

/** What the tick may do besides: remove what a newer manifest no longer names, and give up uploads. */
export function grantRemoval(to: IFunction, bucket: Bucket, prefix: string): void {
  const resources = [bucket.arnForObjects(`${prefix}/*`)];
  to.addToRolePolicy(
    new PolicyStatement({ sid: 'RemoveObjects', actions: ['s3:DeleteObject', 's3:AbortMultipartUpload'], resources }),
  );
}

/**
 * A commit or a manifest is created once and never replaced, by any caller: the protocol depends on it, so the bucket
 * itself refuses a write to those folders that is not conditional.
 */
function refuseOverwrites(bucket: Bucket, prefix: string): void {
  bucket.addToResourcePolicy(
    new PolicyStatement({
      sid: 'CreateOnly',
      effect: Effect.DENY,
      actions: ['s3:PutObject'],
      principals: [new AnyPrincipal()],
      resources: [bucket.arnForObjects(`${prefix}/log/*`), bucket.arnForObjects(`${prefix}/manifest/*`)],
      conditions: { Null: { 's3:if-none-match': 'true' } },
    }),
  );
}

export interface Backups {
  /** For the function that makes them; variables without a value are not there. */
  readonly environment: Readonly<Record<string, string>>;
  /** Lets it read, write and prune the repository and read its key, and nothing beside it. */
  grant(to: IFunction): void;
}

/**
 * Backups go to a bucket that is there already, best one of another account or region: this stack neither makes nor
 * removes it, so that nothing that happens to the stack happens to the backups. Without its name there are none.
 */
export function createBackups(scope: Construct): Backups {
  const parameter = (id: string, fallback: string, description: string, allowedPattern = '.*') =>
    new CfnParameter(scope, id, { default: fallback, allowedPattern, description }).valueAsString;
  const bucket = parameter(
    'BackupBucket',
    '',
    'Existing bucket for backups of the store by ticks; none if empty',
    '^$|^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
  );
  const prefix = parameter(
    'BackupPrefix',
    'skua-backups',
    'Prefix of the repository in that bucket',
    '^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$',
  );
  const secret = parameter(
    'BackupKeyName',
    '',
    'Name of a secret with the key for encrypting backups (skua backup key makes one); not encrypted if empty',
    '^[A-Za-z0-9/_+=.@-]*$',
  );
  const everySeconds = new CfnParameter(scope, 'BackupEverySeconds', {
    type: 'Number',
    default: 3_600,
    minValue: 60,
    maxValue: 604_800,
    description: 'Seconds between two backups',
  }).valueAsString;
  const hasBackups = new CfnCondition(scope, 'HasBackups', {
    expression: Fn.conditionNot(Fn.conditionEquals(bucket, '')),
  });
  const hasKey = new CfnCondition(scope, 'HasBackupKey', {
    expression: Fn.conditionAnd(hasBackups, Fn.conditionNot(Fn.conditionEquals(secret, ''))),
  });
  const where = (condition: CfnCondition, value: string) =>
    Token.asString(Fn.conditionIf(condition.logicalId, value, Aws.NO_VALUE));
  return {
    environment: {
      SERVER_BACKUP__REPOSITORY: where(hasBackups, `s3://${bucket}/${prefix}`),
      SERVER_BACKUP__EVERY_SEC: where(hasBackups, everySeconds),
      SERVER_BACKUP__KEY_SECRET: where(hasKey, secret),
    },
    grant: (to) => {
      const arn = (resource: string) =>
        Arn.format({ service: 's3', account: '', region: '', resource }, Stack.of(scope));
      const policy = new CfnPolicy(scope, 'BackupPolicy', {
        policyName: 'Backups',
        roles: [to.role!.roleName],
        policyDocument: new PolicyDocument({
          statements: [
            new PolicyStatement({
              sid: 'KeepBackups',
              actions: ['s3:GetObject', 's3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload'],
              resources: [arn(`${bucket}/${prefix}/*`)],
            }),
            // "Absent" instead of "denied" is answered only to callers that may list.
            new PolicyStatement({
              sid: 'ListBackups',
              actions: ['s3:ListBucket'],
              resources: [arn(bucket)],
              conditions: { StringLikeIfExists: { 's3:prefix': [`${prefix}/*`] } },
            }),
          ],
        }),
      });
      policy.cfnOptions.condition = hasBackups;
      // The platform adds six characters to the name of a secret.
      const keyArn = Arn.format(
        {
          service: 'secretsmanager',
          resource: 'secret',
          resourceName: `${secret}-??????`,
          arnFormat: ArnFormat.COLON_RESOURCE_NAME,
        },
        Stack.of(scope),
      );
      const keyPolicy = new CfnPolicy(scope, 'BackupKeyPolicy', {
        policyName: 'BackupKey',
        roles: [to.role!.roleName],
        policyDocument: new PolicyDocument({
          statements: [
            new PolicyStatement({
              sid: 'ReadBackupKey',
              actions: ['secretsmanager:GetSecretValue'],
              resources: [keyArn],
            }),
          ],
        }),
      });
      keyPolicy.cfnOptions.condition = hasKey;
    },
  };
}
