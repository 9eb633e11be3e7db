import { defineCommand } from '../cli/command.ts';
import { clusterResetOptions, clusterStatusOptions, clusterTryOptions } from './options-command.ts';

/** `skua cluster ...`: several members over one log. */

export const clusterTryCommand = defineCommand({
  name: 'cluster try',
  summary: 'Run a cluster of three members on this machine',
  details:
    'Starts members without TLS over a log in a directory, each with its own replica, and shows their addresses and what to try. Each logs to its own file. Ctrl+C stops them all; a member that exits on its own is reported and not restarted, and the others keep running. The data is kept, and the next run continues with it. For real members, each on a machine of its own, use `skua start --storage s3://bucket/prefix --db DIR --cluster-size 3`.',
  options: clusterTryOptions,
  examples: [
    { line: 'skua cluster try', does: 'Three members on the ports 2113, 2123 and 2133' },
    { line: 'skua cluster try --members 5 --db /tmp/five --port 3000', does: 'Five members, in another place' },
  ],
  run: async (input, io) => (await import('./run-cluster-try.ts')).runClusterTry(input, io),
});

export const clusterStatusCommand = defineCommand({
  name: 'cluster status',
  summary: 'Show the members of a cluster, the leader, and the lag of each replica',
  details:
    'Asks one member for what it knows about all: state, priority, epoch, where each replica of the log ends, how far it is behind the furthest one, and which scavenge is running. Exit code 1: there is no leader, or a member is dead or not serving.',
  options: clusterStatusOptions,
  examples: [
    { line: 'skua cluster status', does: 'As seen by the member on this machine' },
    {
      line: 'skua cluster status --node http://127.0.0.1:2123 --json',
      does: 'As seen by another member; for a program',
    },
    { line: 'skua cluster status --watch', does: 'Watch a member fall behind and catch up' },
  ],
  run: async (input, io) => (await import('./run-cluster-status.ts')).runClusterStatus(input, io),
});

export const clusterResetCommand = defineCommand({
  name: 'cluster reset',
  summary: 'Start a new log from a replica after the bucket was lost',
  details:
    'For when the log itself is lost or was rolled back to an older state, and to turn a single node into a cluster. Stop all members, find the replica that reaches furthest (`skua cluster status` beforehand, or the log end that this command shows), and name its directory. Its contents are uploaded to a new prefix as a new log with its own id; the directory becomes a replica of it. Commits that only other replicas or the lost log hold are lost: the command shows where this replica ends before it asks. Start the other members with --storage at the new prefix and empty directories, or restored from a backup of this one. Nothing takes effect before the last step, so an interrupted reset can be repeated.',
  options: clusterResetOptions,
  examples: [
    {
      line: 'skua cluster reset --from ./data --storage s3://bucket/second',
      does: 'Show what the replica holds, ask, and start the new log',
    },
    {
      line: 'skua cluster reset --from ./data --storage s3://bucket/second --yes --json',
      does: 'The same from a script',
    },
  ],
  run: async (input, io) =>
    (await import('../audit/command-audit.ts')).withAudit(
      { file: input.options['audit-log'], action: 'cluster.reset', target: input.options.storage },
      io,
      async () => (await import('./run-cluster-reset.ts')).runClusterReset(input, io),
    ),
});
