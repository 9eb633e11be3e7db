import * as path from 'node:path';
import { Duration, RemovalPolicy, Size } from 'aws-cdk-lib';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Architecture, Code, Function as LambdaFunction, Runtime } from 'aws-cdk-lib/aws-lambda';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { Bucket } from 'aws-cdk-lib/aws-s3';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import type { Construct } from 'constructs';
import { HTTP_TIMEOUT_SECONDS, TICK_SECONDS, TICK_TIMEOUT_SECONDS } from '../limits.ts';
import { grantLog, grantRemoval } from './storage.ts';
import type { Backups } from './storage.ts';

const TICK_DISK_GIB = 2;

interface FunctionsProps {
  readonly bucket: Bucket;
  readonly prefix: string;
  /** Folder with one bundle a function. */
  readonly bundles: string;
  /** Megabytes; processor time comes in proportion. */
  readonly httpMemory: number;
  readonly tickMemory: number;
  readonly backups: Backups;
}

export interface Functions {
  readonly webhook: LambdaFunction;
  readonly admin: LambdaFunction;
  readonly streams: LambdaFunction;
  readonly tick: LambdaFunction;
}

/** The four functions from their built bundles, each with what it needs and no more. */
export function createFunctions(scope: Construct, { bucket, prefix, bundles, httpMemory, tickMemory, backups }: FunctionsProps): Functions {
  const { admin, ops, token } = createSecrets(scope);
  const environment = {
    NODE_OPTIONS: '--enable-source-maps',
    SERVER_STORAGE: `s3://${bucket.bucketName}/${prefix}`,
    SERVER_DEFAULT_ADMIN_PASSWORD: reference(admin),
    SERVER_DEFAULT_OPS_PASSWORD: reference(ops),
  };
  const withToken = { ...environment, SERVER_CONNECTORS__DATA_PROTECTION__TOKEN: reference(token) };
  const create = (id: string, name: string, description: string, memorySize: number, timeoutSeconds: number, env: Readonly<Record<string, string>>) => {
    const logGroup = new LogGroup(scope, `${id}Log`, { retention: RetentionDays.ONE_MONTH, removalPolicy: RemovalPolicy.DESTROY });
    // The platform's ready-made role could write to every log group of the account.
    const role = new Role(scope, `${id}Role`, { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
    logGroup.grantWrite(role);
    return new LambdaFunction(scope, id, {
      description, memorySize, role, logGroup, timeout: Duration.seconds(timeoutSeconds), environment: env, code: Code.fromAsset(path.join(bundles, name)), handler: 'index.handler',
      runtime: Runtime.NODEJS_24_X, architecture: Architecture.ARM_64,
      // A tick has its new files on disk until they are published. What a schedule calls is called again by the schedule.
      ...(name === 'tick' && { ephemeralStorageSize: Size.gibibytes(TICK_DISK_GIB), retryAttempts: 0, maxEventAge: Duration.minutes(1) }),
    });
  };
  const functions: Functions = {
    webhook: create('Webhook', 'webhook', 'Skua: takes webhooks', httpMemory, HTTP_TIMEOUT_SECONDS, withToken),
    admin: create('Admin', 'admin', 'Skua: users, connectors, scavenges, schedules', httpMemory, HTTP_TIMEOUT_SECONDS, withToken),
    streams: create('Streams', 'streams', 'Skua: appends to streams and reads them', httpMemory, HTTP_TIMEOUT_SECONDS, environment),
    tick: create('Tick', 'tick', 'Skua: compacts the log, keeps the index, scavenges', tickMemory, TICK_TIMEOUT_SECONDS, { ...environment, ...backups.environment, SERVER_TICK_SECONDS: String(TICK_SECONDS) }),
  };
  grantLog(functions.webhook, bucket, prefix, ['log']);
  grantLog(functions.streams, bucket, prefix, ['log']);
  grantLog(functions.admin, bucket, prefix, ['log', 'control']);
  grantLog(functions.tick, bucket, prefix, null);
  grantRemoval(functions.tick, bucket, prefix);
  backups.grant(functions.tick);
  return functions;
}

const LENGTH = 40;

/**
 * The passwords of a first start and the data-protection token: made by the platform, kept when the stack is deleted, and
 * named in templates by reference only. The token seals the secrets of connectors, so losing it loses those.
 */
function createSecrets(scope: Construct): { readonly admin: Secret; readonly ops: Secret; readonly token: Secret } {
  const secret = (id: string, description: string) => new Secret(scope, id, {
    description, removalPolicy: RemovalPolicy.RETAIN, generateSecretString: { passwordLength: LENGTH, excludePunctuation: true, includeSpace: false },
  });
  return {
    admin: secret('AdminPassword', 'Password with which the user admin of Skua is created'),
    ops: secret('OpsPassword', 'Password with which the user ops of Skua is created'),
    token: secret('DataProtectionToken', 'Secret under which Skua seals secrets of connectors'),
  };
}

/** A reference that the platform resolves when it deploys. */
function reference(secret: Secret): string {
  return secret.secretValue.unsafeUnwrap();
}
