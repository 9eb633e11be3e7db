import * as path from 'node:path';
import { Aws, CfnCondition, CfnParameter, Duration, Fn, RemovalPolicy, Size, Token } from 'aws-cdk-lib';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Architecture, Code, Function as LambdaFunction, Runtime } from 'aws-cdk-lib/aws-lambda';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { Bucket } from 'aws-cdk-lib/aws-s3';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import type { Construct } from 'constructs';
import { HTTP_TIMEOUT_SECONDS, TICK_SECONDS, TICK_TIMEOUT_SECONDS } from '../function-limits.ts';
import { grantLog, grantRemoval } from './storage-construct.ts';
import type { Backups } from './storage-construct.ts';

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

interface FunctionProps {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly memorySize: number;
  readonly timeoutSeconds: number;
  readonly env?: Readonly<Record<string, string>>;
  /** By the variable that names each. */
  readonly secrets?: Readonly<Record<string, Secret>>;
  /** Calls at once, unless the parameter says otherwise; without one nothing is reserved. */
  readonly concurrency?: number;
}

/**
 * Calls at once of the functions that everybody reaches: a flood of calls of one function takes nothing from the
 * others, from the tick or from the rest of the account, and costs no more than these numbers allow.
 */
const STREAMS_CONCURRENCY = 50;
const WEBHOOK_CONCURRENCY = 50;
const ADMIN_CONCURRENCY = 10;
const CONCURRENCY_MAX = 10_000;

/** The parameter for a function's reserved concurrency; 0 reserves nothing, which small accounts need. */
function reserved(scope: Construct, id: string, fallback: number): number {
  const parameter = new CfnParameter(scope, `${id}Concurrency`, {
    type: 'Number',
    default: fallback,
    minValue: 0,
    maxValue: CONCURRENCY_MAX,
    description: `Calls of the function ${id} at once, reserved for it and its limit; 0 for neither, where the account has too few to reserve some`,
  });
  const isReserved = new CfnCondition(scope, `Has${id}Concurrency`, {
    expression: Fn.conditionNot(Fn.conditionEquals(parameter.valueAsString, '0')),
  });
  return Token.asNumber(Fn.conditionIf(isReserved.logicalId, parameter.valueAsNumber, Aws.NO_VALUE));
}

/** The four functions from their built bundles, each with what it needs and no more. */
export function createFunctions(
  scope: Construct,
  { bucket, prefix, bundles, httpMemory, tickMemory, backups }: FunctionsProps,
): Functions {
  const { admin, ops, token } = createSecrets(scope);
  const environment = { NODE_OPTIONS: '--enable-source-maps', SERVER_STORAGE: `s3://${bucket.bucketName}/${prefix}` };
  // The names of secrets: a function reads those that it needs when it starts, by a right of its own.
  const users = { SERVER_DEFAULT_ADMIN_PASSWORD_SECRET: admin, SERVER_DEFAULT_OPS_PASSWORD_SECRET: ops };
  const sealing = { SERVER_CONNECTORS__DATA_PROTECTION__TOKEN_SECRET: token };
  const create = ({
    id,
    name,
    description,
    memorySize,
    timeoutSeconds,
    env = {},
    secrets = {},
    concurrency,
  }: FunctionProps) => {
    const logGroup = new LogGroup(scope, `${id}Log`, {
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    // The platform's ready-made role could write to every log group of the account.
    const role = new Role(scope, `${id}Role`, { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
    logGroup.grantWrite(role);
    const arns = Object.values(secrets).map(({ secretArn }) => secretArn);
    if (arns.length > 0)
      role.addToPolicy(
        new PolicyStatement({ sid: 'ReadSecrets', actions: ['secretsmanager:GetSecretValue'], resources: arns }),
      );
    const named = Object.fromEntries(Object.entries(secrets).map(([variable, { secretArn }]) => [variable, secretArn]));
    return new LambdaFunction(scope, id, {
      description,
      memorySize,
      role,
      logGroup,
      timeout: Duration.seconds(timeoutSeconds),
      environment: { ...environment, ...env, ...named },
      code: Code.fromAsset(path.join(bundles, name)),
      handler: 'index.handler',
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      ...(concurrency !== undefined && { reservedConcurrentExecutions: reserved(scope, id, concurrency) }),
      // A tick has its new files on disk until they are published. What a schedule calls is called again by the
      // schedule.
      ...(name === 'tick' && {
        ephemeralStorageSize: Size.gibibytes(TICK_DISK_GIB),
        retryAttempts: 0,
        maxEventAge: Duration.minutes(1),
      }),
    });
  };
  const http = { memorySize: httpMemory, timeoutSeconds: HTTP_TIMEOUT_SECONDS };
  const functions: Functions = {
    webhook: create({
      ...http,
      id: 'Webhook',
      name: 'webhook',
      description: 'Skua: takes webhooks',
      secrets: sealing,
      concurrency: WEBHOOK_CONCURRENCY,
    }),
    admin: create({
      ...http,
      id: 'Admin',
      name: 'admin',
      description: 'Skua: users, connectors, scavenges, schedules',
      secrets: { ...users, ...sealing },
      concurrency: ADMIN_CONCURRENCY,
    }),
    streams: create({
      ...http,
      id: 'Streams',
      name: 'streams',
      description: 'Skua: appends to streams and reads them',
      secrets: users,
      concurrency: STREAMS_CONCURRENCY,
    }),
    tick: create({
      id: 'Tick',
      name: 'tick',
      description: 'Skua: compacts the log, keeps the index, scavenges',
      memorySize: tickMemory,
      timeoutSeconds: TICK_TIMEOUT_SECONDS,
      env: { ...backups.environment, SERVER_TICK_SECONDS: String(TICK_SECONDS) },
    }),
  };
  // A function that lets users log in counts their failures, too.
  grantLog(functions.webhook, bucket, prefix, ['log']);
  grantLog(functions.streams, bucket, prefix, ['log', 'failures']);
  grantLog(functions.admin, bucket, prefix, ['log', 'control', 'failures']);
  grantLog(functions.tick, bucket, prefix, null);
  grantRemoval(functions.tick, bucket, prefix);
  backups.grant(functions.tick);
  return functions;
}

const LENGTH = 40;

/**
 * The passwords of a first start and the data-protection token: made by the platform, kept when the stack is deleted,
 * and named in templates and functions by their ARN only. The token seals the secrets of connectors, so losing it loses
 * those.
 */
function createSecrets(scope: Construct): { readonly admin: Secret; readonly ops: Secret; readonly token: Secret } {
  const secret = (id: string, description: string) =>
    new Secret(scope, id, {
      description,
      removalPolicy: RemovalPolicy.RETAIN,
      generateSecretString: { passwordLength: LENGTH, excludePunctuation: true, includeSpace: false },
    });
  return {
    admin: secret('AdminPassword', 'Password with which the user admin of Skua is created'),
    ops: secret('OpsPassword', 'Password with which the user ops of Skua is created'),
    token: secret('DataProtectionToken', 'Secret with which Skua encrypts the secrets of connectors'),
  };
}
