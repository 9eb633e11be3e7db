import { overlap, parsePlace } from '../../infra/objects/open.ts';
import { storageProblem } from './backup-settings.ts';
import type { Config } from './config.ts';
import type { OptionName, Values } from '../../infra/runtime/config/options.ts';

/**
 * Whether the node is a member of a cluster: it shares a log on object storage (`Storage`) and has a copy of it in `Db`. `Storage` alone, without
 * `Db` being given and with a cluster of one, is a node whose data lie in object storage only.
 */
export function isMember(values: Values, given: (name: OptionName) => boolean): boolean {
  return values.Storage !== null && (given('Db') || values.ClusterSize > 1);
}

/** Characters of a secret: it stands in a header. */
const SECRET_MAX = 1_024;

/** Combinations of options of a cluster that a node refuses to start with. */
export function clusterProblems(config: Config): string[] {
  const { values, given, spelling } = config;
  const { ClusterSize } = values;
  if (ClusterSize <= 0) return [`${spelling('ClusterSize')} must be at least 1, not ${ClusterSize}.`];
  if (ClusterSize > SIZE_MAX) return [`${spelling('ClusterSize')} must be at most ${SIZE_MAX}, not ${ClusterSize}: further copies are read-only replicas (--read-only-replica).`];
  const problems: string[] = [];
  if (values.ReadOnlyReplica && ClusterSize === 1) problems.push(`${spelling('ReadOnlyReplica')} needs a cluster to replicate: say with --cluster-size how many members have a vote there, itself not counted.`);
  if (values.GossipSeed.length > 1 && ClusterSize === 1) problems.push(`${spelling('GossipSeed')} names several nodes, and ${spelling('ClusterSize')} is 1: say with --cluster-size how many members the cluster has.`);
  if ((values.DiscoverViaDns ?? true) && values.ClusterDns?.trim() === '') problems.push(`${spelling('ClusterDns')} is empty: leave it out, members find each other through the log that they share.`);
  if (values.Detach) {
    const others = [...(values.Storage === null ? [] : ['Storage'] as const), ...(ClusterSize === 1 ? [] : ['ClusterSize'] as const), ...(values.ReadOnlyReplica ? ['ReadOnlyReplica'] as const : []), ...(values.MemDb ? ['MemDb'] as const : [])];
    if (others.length > 0) problems.push(`${spelling('Detach')} opens a copy alone: leave out ${others.map(spelling).join(', ')}.`);
  } else if (ClusterSize > 1 && values.Storage === null) {
    problems.push(`${spelling('ClusterSize')} ${ClusterSize}: the members of a cluster share a log on object storage. Say where it is with --storage s3://bucket/prefix (for a try-out on one machine a directory does), the same for all members.`);
  }
  if (isMember(values, given)) problems.push(...memberProblems(config));
  return problems;
}

/** Voting members of one cluster. */
const SIZE_MAX = 99;

function memberProblems({ values, spelling }: Config): string[] {
  const problems: string[] = [];
  const add = (message: string) => { problems.push(message); };
  if (values.MemDb) add(`${spelling('MemDb')}: a member of a cluster keeps its copy in a directory. Leave it out, and say with --db where the copy is.`);
  if (storageProblem(values.Storage!) === null && !values.Db.includes('\0') && overlap(parsePlace(values.Storage!), parsePlace(values.Db))) {
    add(`${spelling('Storage')} and ${spelling('Db')} lie in each other: the log that all members share and the copy of this one need directories of their own.`);
  }
  if (values.UnsafeIgnoreHardDelete) add(`${spelling('UnsafeIgnoreHardDelete')}: the members of a cluster scavenge each for itself, and would then disagree on which streams are deleted. Leave it out.`);
  if (values.ClusterSize > 1) problems.push(...trustProblems(values, spelling));
  return problems;
}

/** How members know each other: by certificates, or, with `Insecure`, not at all; by the secret in any case where there is one. */
function trustProblems({ Insecure, DisableTls, Dev, ClusterSecret, TrustedRootCertificatesPath }: Values, spelling: Config['spelling']): string[] {
  if (Insecure) return [];
  const secret = ClusterSecret ?? '';
  if (!DisableTls && !Dev) {
    const unknown = TrustedRootCertificatesPath !== null ? [] : ['Members of a cluster know each other by their certificates: say with --trusted-root-certificates-path which authority signs them. Or choose --disable-tls with --cluster-secret.'];
    return [...unknown, ...secretProblems(secret, spelling)];
  }
  if (!DisableTls) return [`${spelling('Dev')} makes a certificate that other members do not know: give each a certificate of one authority (--certificate-file, --trusted-root-certificates-path), or choose --disable-tls with --cluster-secret.`];
  if (secret === '') return [`${spelling('DisableTls')}: without certificates the members of a cluster know each other by a secret. Give all of them the same --cluster-secret, better in the environment (SERVER_CLUSTER_SECRET) or in the configuration file.`];
  return secretProblems(secret, spelling);
}

/** Whatever can't stand in a header would fail at the first call only. */
function secretProblems(secret: string, spelling: Config['spelling']): string[] {
  return secret.length <= SECRET_MAX && /^[\x21-\x7e]*$/.test(secret) ? [] : [`${spelling('ClusterSecret')} may have letters, digits and signs of ASCII, no blanks, at most ${SECRET_MAX} of them.`];
}
