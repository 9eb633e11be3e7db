import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';
// Imported before a test installs fake timers: the node takes the real ones from here.
import '../../infra/timers.ts';
import type { TestNode, TestNodeOptions } from './api.ts';

export type * from '../embedded/api.ts';
export type { Duration, RemovedEvent, ScavengeOutcome, Seed, TestNode, TestNodeOptions, TestUser } from './api.ts';
export { SkuaError } from '../../core/base/errors.ts';
export { isSkuaError } from '../event-store/store-errors.ts';
export { REMOVED_MAX } from './test-limits.ts';

/**
 * Starts a node in this process, on a free port of the loopback address, and resolves when it serves. Rejects with an
 * error that has a `code`: `bad_option` for options that make no sense, and what a node can't start with.
 *
 * @example
 * const node = await startTestNode({ seed: { 'order-1': [{ type: 'placed', data: { total: 12 } }] } });
 * const client = KurrentDBClient.connectionString(node.kurrentConnectionString);
 * // …
 * await node.stop();
 */
export async function startTestNode(options: TestNodeOptions = {}): Promise<TestNode> {
  const { checkOptions, openTestNode } = await loaded();
  return openTestNode(checkOptions(options));
}

/**
 * Loaded with the first node, so that what was compiled in one process of tests is found by those that follow, as with
 * the command line. Sources have a place for that of their own.
 */
async function loaded() {
  if (import.meta.url.endsWith('.js')) nodeModule.enableCompileCache(fileURLToPath(new URL('.cache', import.meta.url)));
  const [{ checkOptions }, { openTestNode }] = await Promise.all([
    import('./test-options.ts'),
    import('./test-node.ts'),
  ]);
  return { checkOptions, openTestNode };
}
