import { CfnCondition, Duration, Fn } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { CfnSubscription, Topic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';
import type { Functions } from './functions.ts';

const PERIOD = Duration.minutes(5);
/** Replies with a status of 500 and above that a function may give in a period. */
const FAILURES_MAX = 5;
/** Without a tick for three periods the log grows, and cold starts with it. */
const PERIODS_WITHOUT_TICK = 3;

/** Who is told, and of what: functions that fail or are held back, replies that fail, and a tick that does not run. */
export function createAlarms(scope: Construct, functions: Functions, email: string): void {
  const topic = new Topic(scope, 'Alarms', { displayName: 'Skua' });
  const hasEmail = new CfnCondition(scope, 'HasAlarmEmail', { expression: Fn.conditionNot(Fn.conditionEquals(email, '')) });
  const subscription = new CfnSubscription(scope, 'AlarmEmailSubscription', { topicArn: topic.topicArn, protocol: 'email', endpoint: email });
  subscription.cfnOptions.condition = hasEmail;
  const alarm = (id: string, metric: Metric, threshold: number, description: string) => {
    new Alarm(scope, id, {
      metric, threshold, alarmDescription: description, evaluationPeriods: 1, comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD, treatMissingData: TreatMissingData.NOT_BREACHING,
    }).addAlarmAction(new SnsAction(topic));
  };
  for (const [name, each] of Object.entries(functions) as [keyof Functions, Functions[keyof Functions]][]) {
    const id = `${name[0]!.toUpperCase()}${name.slice(1)}`;
    alarm(`${id}Errors`, each.metricErrors({ period: PERIOD, statistic: 'Sum' }), 0, `The function ${name} crashed, ran out of time or memory, or (the tick) failed. Its log group has the reason.`);
    alarm(`${id}Throttles`, each.metricThrottles({ period: PERIOD, statistic: 'Sum' }), 0, `Calls of the function ${name} were refused by the platform: raise the account's limit of concurrent executions.`);
    if (name !== 'tick') alarm(`${id}Failures`, failures(each.functionName), FAILURES_MAX, `The function ${name} answers with 500 and above. Its log group has the reason.`);
  }
  new Alarm(scope, 'TickMissing', {
    metric: functions.tick.metricInvocations({ period: PERIOD, statistic: 'Sum' }), threshold: 1, evaluationPeriods: PERIODS_WITHOUT_TICK, comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD,
    treatMissingData: TreatMissingData.BREACHING, alarmDescription: 'No tick has run for a quarter of an hour: nothing is compacted or scavenged. Look at its schedule.',
  }).addAlarmAction(new SnsAction(topic));
}

/** Of the function's own address. */
function failures(functionName: string): Metric {
  return new Metric({ namespace: 'AWS/Lambda', metricName: 'Url5xxCount', dimensionsMap: { FunctionName: functionName }, period: PERIOD, statistic: 'Sum' });
}
