import { Arn, Aws, CfnCondition, CfnParameter, Fn, Stack, Token } from 'aws-cdk-lib';
import { CfnPolicy, PolicyDocument, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';

export interface Backups {
  /** For the function that makes them; variables without a value are not there. */
  readonly environment: Readonly<Record<string, string>>;
  /** Lets it read, write and prune the repository, and nothing beside it. */
  grant(to: IFunction): void;
}

/**
 * Backups go to a bucket that is there already, best one of another account or region: this stack neither makes nor removes it, so that
 * nothing that happens to the stack happens to the backups. Without its name there are none.
 */
export function createBackups(scope: Construct): Backups {
  const parameter = (id: string, fallback: string, description: string, allowedPattern = '.*') => new CfnParameter(scope, id, { default: fallback, allowedPattern, description }).valueAsString;
  const bucket = parameter('BackupBucket', '', 'Bucket that ticks back the store up to, which is there already; none where it is empty', '^$|^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$');
  const prefix = parameter('BackupPrefix', 'skua-backups', 'Where in that bucket the repository is', '^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$');
  const secret = parameter('BackupKeyName', '', 'Name of a secret whose text is the key under which backups are encrypted (skua backup key makes one); not encrypted where it is empty', '^[A-Za-z0-9/_+=.@-]*$');
  const everySeconds = new CfnParameter(scope, 'BackupEverySeconds', { type: 'Number', default: 3_600, minValue: 60, maxValue: 604_800, description: 'Seconds from one backup to the next' }).valueAsString;
  const hasBackups = new CfnCondition(scope, 'HasBackups', { expression: Fn.conditionNot(Fn.conditionEquals(bucket, '')) });
  const hasKey = new CfnCondition(scope, 'HasBackupKey', { expression: Fn.conditionAnd(hasBackups, Fn.conditionNot(Fn.conditionEquals(secret, ''))) });
  const where = (condition: CfnCondition, value: string) => Token.asString(Fn.conditionIf(condition.logicalId, value, Aws.NO_VALUE));
  return {
    environment: {
      SERVER_BACKUP__REPOSITORY: where(hasBackups, `s3://${bucket}/${prefix}`),
      SERVER_BACKUP__EVERY_SEC: where(hasBackups, everySeconds),
      SERVER_BACKUP__KEY: where(hasKey, `{{resolve:secretsmanager:${secret}}}`),
    },
    grant: (to) => {
      const arn = (resource: string) => Arn.format({ service: 's3', account: '', region: '', resource }, Stack.of(scope));
      const policy = new CfnPolicy(scope, 'BackupPolicy', {
        policyName: 'Backups', roles: [to.role!.roleName],
        policyDocument: new PolicyDocument({
          statements: [
            new PolicyStatement({ sid: 'KeepBackups', actions: ['s3:GetObject', 's3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload'], resources: [arn(`${bucket}/${prefix}/*`)] }),
            // What is absent is told apart from what is denied only to those who may list.
            new PolicyStatement({ sid: 'ListBackups', actions: ['s3:ListBucket'], resources: [arn(bucket)], conditions: { StringLikeIfExists: { 's3:prefix': [`${prefix}/*`] } } }),
          ],
        }),
      });
      policy.cfnOptions.condition = hasBackups;
    },
  };
}
