import { defineCommand } from '../cli/command.ts';
import { clusterStatusOptions, clusterTryOptions } from './options.ts';

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
