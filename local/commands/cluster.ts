import { defineCommand } from '../cli/command.ts';
import { clusterResetOptions, clusterStatusOptions, clusterTryOptions } from './options.ts';

/** `skua cluster ...`: several members over one log. */

export const clusterTryCommand = defineCommand({
  name: 'cluster try',
  summary: 'Run a cluster of three members on this machine',
  details: 'Starts members with TLS off over a log in a directory, each with a copy of its own, and shows where they are and what to try. What they log goes to a file each. Ctrl+C stops all; a member that ends by itself is told of and not started again, and the others go on. The data stay, and the next run goes on with them. For real members, each on a machine of its own, use `skua start --storage s3://bucket/prefix --db DIR --cluster-size 3`.',
  options: clusterTryOptions,
  examples: [
    { line: 'skua cluster try', does: 'Three members on the ports 2113, 2123 and 2133' },
    { line: 'skua cluster try --members 5 --db /tmp/five --port 3000', does: 'Five, elsewhere' },
  ],
  run: async (input, io) => (await import('./run-cluster-try.ts')).runClusterTry(input, io),
});

export const clusterStatusCommand = defineCommand({
  name: 'cluster status',
  summary: 'Show the members of a cluster, who leads, and how far each is',
  details: 'Asks one member for what it knows of all: state, priority, epoch, where its copy of the log ends, how far that is behind the furthest one, and which scavenge runs there. Exit code 1: nobody leads, or a member is dead or does not serve.',
  options: clusterStatusOptions,
  examples: [
    { line: 'skua cluster status', does: 'As the member on this machine knows it' },
    { line: 'skua cluster status --node http://127.0.0.1:2123 --json', does: 'As another one does, for a program' },
    { line: 'skua cluster status --watch', does: 'See a member fall behind, and catch up' },
  ],
  run: async (input, io) => (await import('./run-cluster-status.ts')).runClusterStatus(input, io),
});

export const clusterResetCommand = defineCommand({
  name: 'cluster reset',
  summary: 'Begin a new log at the end of a copy, when the bucket is lost',
  details: 'For the day on which the log itself is lost or was put back to an older state, and for a single node that becomes a cluster. Stop all members, find the copy that reaches furthest (`skua cluster status` before, or the end that this command shows), and name its directory. What it holds goes to a new prefix as a new log with an id of its own; the directory becomes a copy of it. Commits that only other copies or the lost log hold are lost: the command shows where this one ends before it asks. The other members start with --storage at the new prefix and empty directories, or restored from a backup of this one. Nothing counts before the last step, so an ended reset is repeated.',
  options: clusterResetOptions,
  examples: [
    { line: 'skua cluster reset --from ./data --storage s3://bucket/second', does: 'Show what the copy holds, ask, and begin' },
    { line: 'skua cluster reset --from ./data --storage s3://bucket/second --yes --json', does: 'The same from a script' },
  ],
  run: async (input, io) => (await import('../audit/command-audit.ts')).withAudit({ file: input.options['audit-log'], action: 'cluster.reset', target: input.options.storage }, io, async () => (await import('./run-cluster-reset.ts')).runClusterReset(input, io)),
});
