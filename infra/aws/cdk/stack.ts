import { CfnOutput, CfnParameter, Duration, Stack } from 'aws-cdk-lib';
import type { StackProps } from 'aws-cdk-lib';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction as CallFunction } from 'aws-cdk-lib/aws-events-targets';
import type { Construct } from 'constructs';
import { TICK_PERIOD_SECONDS } from '../limits.ts';
import { createAlarms } from './alarms.ts';
import { createBackups } from './backups.ts';
import { createFunctions } from './functions.ts';
import { createRoutes } from './routes.ts';
import { createBucket } from './storage.ts';

export interface SkuaStackProps extends StackProps {
  /** Folder with one bundle a function, as `npm run build` leaves it. */
  readonly bundles: string;
}

/** Everything of one store on the platform: nothing of it costs while nobody calls, but the bucket, three secrets and the ticks. */
export class SkuaStack extends Stack {
  constructor(scope: Construct, id: string, { bundles, ...props }: SkuaStackProps) {
    super(scope, id, props);
    const prefix = new CfnParameter(this, 'Prefix', {
      default: 'skua', allowedPattern: '^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$', maxLength: 200, description: 'Where in the bucket the data are; another prefix is another store',
    }).valueAsString;
    const httpMemory = memory(this, 'FunctionMemory', 1_024, 'Memory of the functions that answer requests, in MB; processor time comes in proportion');
    const tickMemory = memory(this, 'TickMemory', 1_769, 'Memory of the tick, in MB; 1769 is one processor');
    const email = new CfnParameter(this, 'AlarmEmail', { default: '', description: 'Who is told of alarms; nobody where it is empty' }).valueAsString;
    const bucket = createBucket(this, prefix);
    const functions = createFunctions(this, { bucket, prefix, bundles, httpMemory, tickMemory, backups: createBackups(this) });
    createRoutes(this, functions);
    new Rule(this, 'TickSchedule', { description: 'Runs the tick of Skua', schedule: Schedule.rate(Duration.seconds(TICK_PERIOD_SECONDS)), targets: [new CallFunction(functions.tick, { retryAttempts: 0 })] });
    createAlarms(this, functions, email);
    new CfnOutput(this, 'BucketName', { value: bucket.bucketName, description: 'Holds all data, and stays when the stack is deleted' });
  }
}

function memory(scope: Construct, id: string, fallback: number, description: string): number {
  return new CfnParameter(scope, id, { type: 'Number', default: fallback, minValue: 256, maxValue: 10_240, description }).valueAsNumber;
}
