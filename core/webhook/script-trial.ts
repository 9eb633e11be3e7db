import type { Clock } from '../ports/clock.ts';
import type { RoutingSandbox } from '../ports/routing-sandbox.ts';
import type { TestInput, TestResult } from './api.ts';
import { isJsonBody, refusalOfRoute, routingRequestJson } from './routing-contract.ts';

/** A call that is routed but not written. */
export interface Trial {
  /** Names the sandbox's lane: a trial need not stand in the way of the connector's own calls. */
  readonly lane: string;
  /** What the path that the script sees ends in. */
  readonly connectorId: string;
  readonly script: string;
  readonly input: TestInput;
}

/** Runs the script as the ingest would, and tells what would come of the call. Nothing is written, and the lane is left for the caller to release. */
export async function tryScript({ sandbox, clock }: { sandbox: RoutingSandbox; clock: Clock }, { lane, connectorId, script, input }: Trial): Promise<TestResult> {
  if (!isJsonBody(input.body)) return { outcome: 'invalid-json', stream: null, schema: null, error: 'The body is no JSON that a call may have.', durationMs: 0 };
  const headers = Object.entries(input.headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const requestJson = routingRequestJson(input.body, headers.filter(isGiven), `/webhook/${connectorId}`, Object.entries(input.query).filter(isGiven));
  const startMs = clock.monotonicMs();
  const result = await sandbox.route({ connectorId: lane, script, requestJson, nowMs: clock.nowMs(), seed: 0 });
  // Where the sandbox tells it, the time that the limit counts: how long a thread took to start is of no interest.
  const durationMs = 'cpuMs' in result ? result.cpuMs : clock.monotonicMs() - startMs;
  if (result.kind !== 'routed') return { outcome: result.kind, stream: null, schema: null, error: result.kind === 'skipped' ? null : result.reason, durationMs };
  const { stream, schema } = result;
  const error = refusalOfRoute(stream, schema);
  return { outcome: error === null ? 'routed' : 'failed', stream, schema, error, durationMs };
}

/** Headers and parameters without a value are not shown to a script. */
function isGiven([, value]: readonly [string, string]): boolean {
  return value !== '';
}
