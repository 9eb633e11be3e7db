import type { Io } from './io.ts';
import { address, isAddress } from './options.ts';
import { UsageError } from './usage-error.ts';

/** Where a node is looked for unless one is named. */
export const DEFAULT_NODE = 'http://127.0.0.1:2113';

/** `--node URL` of every command that talks to a running node. */
export const nodeOption = address('URL', `SKUA_NODE or ${DEFAULT_NODE}`, 'Node to talk to; may carry user and password, else SKUA_USER and SKUA_PASSWORD count');

/** The address given, or that of the environment, or the default. */
export function nodeOf(given: string | null, io: Io): string {
  const node = given ?? (io.env['SKUA_NODE'] || DEFAULT_NODE);
  if (!isAddress(node)) throw new UsageError(`SKUA_NODE must be an address such as ${DEFAULT_NODE}, not '${node}'.`);
  return node;
}
