import type { RoutingCall, RoutingLimits, RoutingResult, RoutingSandbox } from '../../../core/ports/routing-sandbox.ts';
import { QuickJsSandbox } from '../../../infra/quickjs/quickjs-sandbox.ts';
import type { QuickJsSandboxOptions } from '../../../infra/quickjs/quickjs-sandbox.ts';

/** A call whose thread gets no processor for some five times `timeoutMs` counts as one that spins. */
export const LIMITS: RoutingLimits = {
  timeoutMs: 2_000,
  memoryBytesMax: 32 * 1024 * 1024,
  stackBytesMax: 256 * 1024,
  outputLengthMax: 20_000,
  workers: 2,
  callsQueuedMax: 1000,
  connectorCallsQueuedMax: 100,
};

export function quickJsSandbox(
  limits: Partial<RoutingLimits> = {},
  options: Partial<QuickJsSandboxOptions> = {},
): QuickJsSandbox & AsyncDisposable {
  const sandbox = new QuickJsSandbox({ ...options, limits: { ...LIMITS, ...limits } });
  return Object.assign(sandbox, { [Symbol.asyncDispose]: () => sandbox.close() });
}

export function callOf(
  sandbox: RoutingSandbox,
  script: string,
  options: Partial<RoutingCall> = {},
): Promise<RoutingResult> {
  return sandbox.route({
    connectorId: 'shop',
    requestJson: '{"body":{},"headers":{},"path":"/webhook/shop","query":{}}',
    nowMs: 1000,
    seed: 1,
    ...options,
    script,
  });
}
