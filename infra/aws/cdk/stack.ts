import { CfnCondition, CfnOutput, CfnParameter, Duration, Fn, Stack } from 'aws-cdk-lib';
import type { StackProps } from 'aws-cdk-lib';
import { HttpApi, HttpMethod } from 'aws-cdk-lib/aws-apigatewayv2';
import { HttpLambdaIntegration } from 'aws-cdk-lib/aws-apigatewayv2-integrations';
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction as CallFunction } from 'aws-cdk-lib/aws-events-targets';
import { FunctionUrlAuthType } from 'aws-cdk-lib/aws-lambda';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { CfnSubscription, Topic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';
import { TICK_PERIOD_SECONDS } from '../function-limits.ts';
import { ADMIN_SEGMENTS } from '../paths.ts';
import { createFunctions } from './functions.ts';
import type { Functions } from './functions.ts';
import { createBackups, createBucket } from './storage-construct.ts';

interface SkuaStackProps extends StackProps {
  /** Folder with one bundle a function, as `npm run build` leaves it. */
  readonly bundles: string;
}

/**
 * Everything of one store on the platform: nothing of it costs without calls, but the bucket, three secrets and
 * the ticks.
 */
export class SkuaStack extends Stack {
  constructor(scope: Construct, id: string, { bundles, ...props }: SkuaStackProps) {
    super(scope, id, props);
    const prefix = new CfnParameter(this, 'Prefix', {
      default: 'skua',
      allowedPattern: '^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$',
      maxLength: 200,
      description: 'Prefix of the data in the bucket; another prefix is another store',
    }).valueAsString;
    const httpMemory = memory(
      this,
      'FunctionMemory',
      1_024,
      'Memory of the functions that answer requests, in MB; CPU is proportional',
    );
    const tickMemory = memory(this, 'TickMemory', 1_769, 'Memory of the tick, in MB; 1769 is one CPU');
    const email = new CfnParameter(this, 'AlarmEmail', {
      default: '',
      description: 'Recipient of alarms; none if empty',
    }).valueAsString;
    const bucket = createBucket(this, prefix);
    const functions = createFunctions(this, {
      bucket,
      prefix,
      bundles,
      httpMemory,
      tickMemory,
      backups: createBackups(this),
    });
    createRoutes(this, functions);
    new Rule(this, 'TickSchedule', {
      description: 'Runs the tick of Skua',
      schedule: Schedule.rate(Duration.seconds(TICK_PERIOD_SECONDS)),
      targets: [new CallFunction(functions.tick, { retryAttempts: 0 })],
    });
    createAlarms(this, functions, email);
    new CfnOutput(this, 'BucketName', {
      value: bucket.bucketName,
      description: 'Holds all data, and is kept when the stack is deleted',
    });
  }
}

function memory(scope: Construct, id: string, fallback: number, description: string): number {
  return new CfnParameter(scope, id, {
    type: 'Number',
    default: fallback,
    minValue: 256,
    maxValue: 10_240,
    description,
  }).valueAsNumber;
}

/**
 * Two ways in. One address for everything, as of a node: the gateway, which decodes paths, so that names with an
 * escaped `/`, `?` or `%` don't come through. And each function's own address, which leaves paths alone and costs
 * nothing a request. The functions themselves check the caller, as a node does.
 */
function createRoutes(scope: Construct, { webhook, admin, streams }: Functions): void {
  const api = new HttpApi(scope, 'Api', {
    description: 'Skua',
    defaultIntegration: new HttpLambdaIntegration('StreamsIntegration', streams),
  });
  const adminIntegration = new HttpLambdaIntegration('AdminIntegration', admin);
  for (const name of ADMIN_SEGMENTS) {
    for (const path of [`/${name}`, `/${name}/{proxy+}`])
      api.addRoutes({ path, methods: [HttpMethod.ANY], integration: adminIntegration });
  }
  api.addRoutes({
    path: '/webhook/{proxy+}',
    methods: [HttpMethod.ANY],
    integration: new HttpLambdaIntegration('WebhookIntegration', webhook),
  });
  output(scope, 'ApiUrl', api.apiEndpoint, 'One address for everything');
  for (const [id, each, what] of [
    ['Streams', streams, 'streams'],
    ['Admin', admin, 'administration'],
    ['Webhook', webhook, 'webhooks'],
  ] as const) {
    output(scope, `${id}Url`, urlOf(each), `The function for ${what} alone`);
  }
}

function urlOf(to: LambdaFunction): string {
  return to.addFunctionUrl({ authType: FunctionUrlAuthType.NONE }).url;
}

function output(scope: Construct, id: string, value: string, description: string): void {
  new CfnOutput(scope, id, { value, description });
}

const PERIOD = Duration.minutes(5);
/** Replies with a status of 500 and above that a function may give in a period. */
const FAILURES_MAX = 5;
/** Without a tick for three periods the log grows, and cold starts with it. */
const PERIODS_WITHOUT_TICK = 3;

/** Mails alarms: functions that fail or are throttled, replies that fail, and a tick that does not run. */
function createAlarms(scope: Construct, functions: Functions, email: string): void {
  const topic = new Topic(scope, 'Alarms', { displayName: 'Skua' });
  const hasEmail = new CfnCondition(scope, 'HasAlarmEmail', {
    expression: Fn.conditionNot(Fn.conditionEquals(email, '')),
  });
  const subscription = new CfnSubscription(scope, 'AlarmEmailSubscription', {
    topicArn: topic.topicArn,
    protocol: 'email',
    endpoint: email,
  });
  subscription.cfnOptions.condition = hasEmail;
  const alarm = (id: string, metric: Metric, threshold: number, description: string) => {
    new Alarm(scope, id, {
      metric,
      threshold,
      alarmDescription: description,
      evaluationPeriods: 1,
      comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
      treatMissingData: TreatMissingData.NOT_BREACHING,
    }).addAlarmAction(new SnsAction(topic));
  };
  for (const [name, each] of Object.entries(functions) as [keyof Functions, Functions[keyof Functions]][]) {
    const id = `${name[0]!.toUpperCase()}${name.slice(1)}`;
    alarm(
      `${id}Errors`,
      each.metricErrors({ period: PERIOD, statistic: 'Sum' }),
      0,
      `The function ${name} crashed, ran out of time or memory, or (the tick) failed. See its log group for the reason.`,
    );
    alarm(
      `${id}Throttles`,
      each.metricThrottles({ period: PERIOD, statistic: 'Sum' }),
      0,
      `Calls of the function ${name} were throttled by the platform: too many at once. If they were intended, raise its concurrency parameter or the account's limit of concurrent executions.`,
    );
    if (name !== 'tick')
      alarm(
        `${id}Failures`,
        failures(each.functionName),
        FAILURES_MAX,
        `The function ${name} answers with 500 and above. See its log group for the reason.`,
      );
  }
  new Alarm(scope, 'TickMissing', {
    metric: functions.tick.metricInvocations({ period: PERIOD, statistic: 'Sum' }),
    threshold: 1,
    evaluationPeriods: PERIODS_WITHOUT_TICK,
    comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD,
    treatMissingData: TreatMissingData.BREACHING,
    alarmDescription:
      'No tick has run for a quarter of an hour: nothing is compacted or scavenged. Check its schedule.',
  }).addAlarmAction(new SnsAction(topic));
}

/** Of the function's own address. */
function failures(functionName: string): Metric {
  return new Metric({
    namespace: 'AWS/Lambda',
    metricName: 'Url5xxCount',
    dimensionsMap: { FunctionName: functionName },
    period: PERIOD,
    statistic: 'Sum',
  });
}
