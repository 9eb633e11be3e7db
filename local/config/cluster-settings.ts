import { overlap, parseLocation } from '../../infra/objects/open-objects.ts';
import { storageProblem } from './backup-settings.ts';
import type { Config } from './config.ts';
import type { OptionName, Values } from '../../infra/runtime/config/options.ts';

/**
 * Whether the node is a member of a cluster: it shares a log on object storage (`Storage`) and has a copy of it in
 * `Db`. `Storage` alone, without `Db` being given and with a cluster of one, is a node whose data lie in object storage
 * only.
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
  if (ClusterSize > SIZE_MAX)
    return [
      `${spelling('ClusterSize')} must be at most ${SIZE_MAX}, not ${ClusterSize}: further replicas are read-only (--read-only-replica).`,
    ];
  const problems: string[] = [];
  if (values.ReadOnlyReplica && ClusterSize === 1)
    problems.push(
      `${spelling('ReadOnlyReplica')} needs a cluster to replicate: set --cluster-size to the number of voting members, not counting this one.`,
    );
  if (values.GossipSeed.length > 1 && ClusterSize === 1)
    problems.push(
      `${spelling('GossipSeed')} names several nodes, and ${spelling('ClusterSize')} is 1: set --cluster-size to the number of members.`,
    );
  if ((values.DiscoverViaDns ?? true) && values.ClusterDns?.trim() === '')
    problems.push(`${spelling('ClusterDns')} is empty: leave it out, members find each other through the shared log.`);
  if (values.Detach) {
    const others = [
      ...(values.Storage === null ? [] : (['Storage'] as const)),
      ...(ClusterSize === 1 ? [] : (['ClusterSize'] as const)),
      ...(values.ReadOnlyReplica ? (['ReadOnlyReplica'] as const) : []),
      ...(values.MemDb ? (['MemDb'] as const) : []),
    ];
    if (others.length > 0)
      problems.push(
        `${spelling('Detach')} opens a replica as a single node: leave out ${others.map(spelling).join(', ')}.`,
      );
  } else if (ClusterSize > 1 && values.Storage === null) {
    problems.push(
      `${spelling('ClusterSize')} ${ClusterSize}: the members of a cluster share a log on object storage. Name it with --storage s3://bucket/prefix (or a directory, for a trial on one machine), the same for all members.`,
    );
  }
  if (isMember(values, given)) problems.push(...memberProblems(config));
  return problems;
}

/** Voting members of one cluster. */
const SIZE_MAX = 99;

function memberProblems({ values, spelling }: Config): string[] {
  const problems: string[] = [];
  const add = (message: string) => {
    problems.push(message);
  };
  if (values.MemDb)
    add(
      `${spelling('MemDb')}: a cluster member keeps its replica in a directory. Leave it out, and name the directory with --db.`,
    );
  if (
    storageProblem(values.Storage!) === null &&
    !values.Db.includes('\0') &&
    overlap(parseLocation(values.Storage!), parseLocation(values.Db))
  ) {
    add(
      `${spelling('Storage')} and ${spelling('Db')} are inside each other: the shared log and the replica of this member need separate directories.`,
    );
  }
  if (values.UnsafeIgnoreHardDelete)
    add(
      `${spelling('UnsafeIgnoreHardDelete')}: each cluster member scavenges on its own, and they would then disagree on which streams are deleted. Leave it out.`,
    );
  if (values.ClusterSize > 1) problems.push(...trustProblems(values, spelling));
  return problems;
}

/**
 * How members know each other: by certificates, or, with `Insecure`, not at all; by the secret in any case where there
 * is one.
 */
function trustProblems(
  { Insecure, DisableTls, Dev, ClusterSecret, TrustedRootCertificatesPath }: Values,
  spelling: Config['spelling'],
): string[] {
  if (Insecure) return [];
  const secret = ClusterSecret ?? '';
  if (!DisableTls && !Dev) {
    const unknown =
      TrustedRootCertificatesPath !== null
        ? []
        : [
            'Cluster members authenticate each other by certificate: name the certificate authority with --trusted-root-certificates-path. Or choose --disable-tls with --cluster-secret.',
          ];
    return [...unknown, ...secretProblems(secret, spelling)];
  }
  if (!DisableTls)
    return [
      `${spelling('Dev')} makes a certificate that other members do not trust: give each a certificate of the same authority (--certificate-file, --trusted-root-certificates-path), or choose --disable-tls with --cluster-secret.`,
    ];
  if (secret === '')
    return [
      `${spelling('DisableTls')}: without certificates, cluster members authenticate each other by a secret. Give all of them the same --cluster-secret, preferably in the environment (SERVER_CLUSTER_SECRET) or in the configuration file.`,
    ];
  return secretProblems(secret, spelling);
}

/** Whatever can't stand in a header would fail at the first call only. */
function secretProblems(secret: string, spelling: Config['spelling']): string[] {
  return secret.length <= SECRET_MAX && /^[\x21-\x7e]*$/.test(secret)
    ? []
    : [`${spelling('ClusterSecret')} may only have printable ASCII characters without spaces, at most ${SECRET_MAX}.`];
}
