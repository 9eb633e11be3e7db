import { isSkuaError } from '../../../core/base/errors.ts';
import type { AuditAction } from '../../../core/ports/audit.ts';
import { noteForAudit } from '../../http/context.ts';
import { scavengerOf } from '../../http/presence.ts';
import type { App } from '../../http/context.ts';
import type { NodeControl } from '../../http/node-control.ts';
import { unary } from '../call.ts';
import type { GrpcCall, GrpcMethod, GrpcService, MethodRule, MethodShape } from '../call.ts';
import { OperationsService, ScavengeRespScavengeResult as ScavengeResult } from '../messages/operations.ts';
import type { ScavengeResp, StartScavengeReq, StopScavengeReq } from '../messages/operations.ts';
import { MalformedMessage } from '../messages/wire.ts';
import { restart, RESTART } from '../persistent/persistent.ts';

/** Directing the node, as `/admin` does over HTTP. */

const { methods } = OperationsService;
const EMPTY = {};

function onNode(audit: AuditAction): MethodRule {
  return { place: 'node', access: 'operators', audit };
}

/**
 * A running scavenge is no error here, but an answer with its id. Fewer than one thread are as many as the node thinks
 * fit; where to start is ignored, as over HTTP.
 */
async function startScavenge({ options }: StartScavengeReq, call: GrpcCall): Promise<ScavengeResp> {
  if (options === undefined) throw new MalformedMessage('options are not set');
  const { threadCount } = options;
  const details = { threadCount };
  try {
    const { scavengeId } = await scavengerOf(call.app).start(threadCount > 0 ? { threads: threadCount } : {});
    noteForAudit(call.call, { target: scavengeId, details });
    return { scavengeId, scavengeResult: ScavengeResult.Started };
  } catch (error) {
    if (!isSkuaError(error, 'scavenge_in_progress')) throw error;
    const scavengeId = String(error.data.scavengeId);
    noteForAudit(call.call, { target: scavengeId, details: { ...details, wasRunning: true } });
    return { scavengeId, scavengeResult: ScavengeResult.InProgress };
  }
}

/** Answered when the run has stopped. */
async function stopScavenge({ options }: StopScavengeReq, call: GrpcCall): Promise<ScavengeResp> {
  noteForAudit(call.call, { target: options?.scavengeId ?? null });
  if (options === undefined) throw new MalformedMessage('options are not set');
  const scavengeId = await scavengerOf(call.app).stop(options.scavengeId);
  noteForAudit(call.call, { target: scavengeId });
  return { scavengeId, scavengeResult: ScavengeResult.Stopped };
}

/** An order that takes effect on this member, and is answered with nothing. */
function order<Request>(
  shape: MethodShape<Request, object>,
  action: AuditAction,
  carryOut: (request: Request, call: GrpcCall) => unknown,
): GrpcMethod {
  return unary(shape, onNode(action), async (request, call) => {
    await carryOut(request, call);
    return EMPTY;
  });
}

/** Null where there is no node around the handlers. */
export function operations({ node, features: { subscriptions } }: App): GrpcService | null {
  if (node === null) return null;
  const restarts =
    subscriptions === null || subscriptions === undefined
      ? []
      : [unary(methods.RestartPersistentSubscriptions, RESTART, () => restart(subscriptions))];
  return { name: OperationsService.name, methods: [...methodsOf(node), ...restarts] };
}

function methodsOf(node: NodeControl): readonly GrpcMethod[] {
  return [
    unary(methods.StartScavenge, onNode('scavenge.start'), startScavenge),
    unary(methods.StopScavenge, onNode('scavenge.stop'), stopScavenge),
    // Answered before the node stops, which lets calls under way end.
    order(methods.Shutdown, 'node.shutdown', () => node.shutdown()),
    order(methods.MergeIndexes, 'index.merge', () => node.mergeIndexes()),
    order(methods.ResignNode, 'node.resign', () => node.resign()),
    order(methods.SetNodePriority, 'node.priority', ({ priority }) => node.setPriority(priority)),
  ];
}
