import { SkuaError } from '../base/errors.ts';

/** What groups are refused with. The texts are those that clients of the reference know. */

export function notFoundError(stream: string, group: string): SkuaError {
  return new SkuaError('persistent_subscription_not_found', `Subscription group ${group} on stream ${stream} does not exist.`, { stream, group });
}

/** Of a stream as a whole; over gRPC, where the reference names a group without a name, that is told. */
export function noneError(stream: string): SkuaError {
  return new SkuaError('persistent_subscription_not_found', `Stream ${stream} has no persistent subscription.`, { stream });
}

export function existsError(stream: string, group: string): SkuaError {
  return new SkuaError('persistent_subscription_exists', `Subscription group ${group} on stream ${stream} exists.`, { stream, group });
}

export function failedError(stream: string, group: string, reason: string): SkuaError {
  return new SkuaError('persistent_subscription_failed', `Subscription group ${group} on stream ${stream} failed: '${reason}'`, { stream, group, reason });
}

export function droppedError(stream: string, group: string): SkuaError {
  return new SkuaError('persistent_subscription_dropped', `Subscription group ${group} on stream ${stream} was dropped.`, { stream, group });
}

export function maximumError(stream: string, group: string): SkuaError {
  return new SkuaError('maximum_subscribers_reached', `Maximum subscriptions reached for subscription group ${group} on stream ${stream}.`, { stream, group });
}

export function tooManyConsumers(stream: string, group: string, limit: number): SkuaError {
  return new SkuaError('too_busy', `Subscription group ${group} on stream ${stream} has ${limit} consumers already: end some.`, { stream, group, limit });
}
