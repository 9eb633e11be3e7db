import type { TestNode, TestNodeOptions } from './api.ts';
import { checkOptions } from './options.ts';
import { openTestNode } from './test-node.ts';

export type * from '../embedded/api.ts';
export type { Duration, RemovedEvent, ScavengeOutcome, Seed, TestNode, TestNodeOptions, TestUser } from './api.ts';
export { isSkuaError, SkuaError } from '../../core/errors.ts';
export { REMOVED_MAX } from './limits.ts';

/**
 * Starts a node in this process, on a free port of the loopback address, and resolves when it serves. Rejects with an error that has a `code`: `bad_option` for options that make no sense, and what a node can't start with.
 *
 * ```ts
 * await using node = await startTestNode({ seed: { 'order-1': [{ type: 'placed', data: { total: 12 } }] } });
 * const client = EventStoreDBClient.connectionString(node.connectionString);
 * ```
 */
export async function startTestNode(options: TestNodeOptions = {}): Promise<TestNode> {
  return openTestNode(checkOptions(options));
}
