import { describe, expect, test } from 'vitest';
import { isMember } from '../../../local/config/cluster-settings.ts';
import { load, problems } from './support.ts';

const BUCKET = '--storage=s3://bucket/orders';
const THREE = [BUCKET, '--cluster-size=3', '--disable-tls', '--cluster-secret=s3cret'];

describe('who is a member', () => {
  const given = (words: readonly string[], yaml?: string) => {
    const config = load(words, yaml === undefined ? {} : { yaml });
    return isMember(config.values, config.given);
  };
  test('Storage with Db given, by whatever source, or in a cluster of more than one', () => {
    expect(given([])).toBe(false);
    expect(given(['--db=x'])).toBe(false);
    expect(given([BUCKET])).toBe(false);
    expect(given([BUCKET, '--db=./data'])).toBe(true);
    expect(given([BUCKET], 'Db: copy')).toBe(true);
    expect(given(THREE)).toBe(true);
  });
});

describe('what a node refuses to start with', () => {
  test.each<[string, readonly string[], string]>([
    ['a cluster without a log', ['--cluster-size=3'], 'Name it with --storage s3://bucket/prefix'],
    ['a replica of nothing', ['--read-only-replica', BUCKET], '--read-only-replica needs a cluster to replicate'],
    ['several seeds of one node', ['--gossip-seed=a:1,b:2'], '--cluster-size is 1'],
    ['an empty name of DNS', ['--cluster-dns='], '--cluster-dns is empty'],
    ['a copy in memory', [...THREE, '--mem-db'], '--mem-db: a cluster member keeps its replica in a directory'],
    ['the copy in the log', ['--storage=shared', '--db=shared/copy'], '--storage and --db are inside each other'],
    ['the log in the copy', ['--storage=copy/log', '--db=copy'], '--storage and --db are inside each other'],
    [
      'marks that scavenges would remove',
      [...THREE, '--unsafe-ignore-hard-delete'],
      '--unsafe-ignore-hard-delete: each cluster member',
    ],
    ['no secret', [BUCKET, '--cluster-size=3', '--disable-tls'], 'SERVER_CLUSTER_SECRET'],
    ['an empty secret', [BUCKET, '--cluster-size=3', '--disable-tls', '--cluster-secret='], 'SERVER_CLUSTER_SECRET'],
    [
      'a secret that no header carries',
      [BUCKET, '--cluster-size=3', '--disable-tls', '--cluster-secret=ø'],
      'printable ASCII characters',
    ],
    [
      'certificates that nobody else knows',
      [BUCKET, '--cluster-size=3', '--dev'],
      '--dev makes a certificate that other members do not trust',
    ],
    ['no authority', [BUCKET, '--cluster-size=3', '--certificate-file=x'], '--trusted-root-certificates-path'],
    [
      'alone and in a cluster',
      [...THREE, '--detach'],
      '--detach opens a replica as a single node: leave out --storage, --cluster-size.',
    ],
    ['backups in the copy', [...THREE, '--db=x', '--backup-repository=x/backups'], 'is in the data directory'],
    ['too many', [BUCKET, '--cluster-size=100', '--insecure'], 'must be at most 99'],
  ])('%s', (_, words, message) => {
    expect(problems(words)).toEqual([expect.stringContaining(message)]);
  });
  test.each([
    [THREE],
    [[BUCKET, '--cluster-size=3', '--insecure']],
    [[BUCKET, '--db=x']],
    [[...THREE, '--read-only-replica', '--db=x', '--index=i']],
    [['--detach', '--db=x']],
    [['--unsafe-ignore-hard-delete']],
    [[BUCKET, '--cluster-size=3', '--certificate-file=x', '--trusted-root-certificates-path=ca']],
    [['--gossip-seed=a:1']],
  ])('%j starts', (words) => {
    expect(problems(words)).toEqual([]);
  });
});

test('options by which the reference finds its members are taken, and said not to be needed', () => {
  const { warnings } = load([
    ...THREE,
    '--gossip-seed=a.test:2113,b.test:2113',
    '--discover-via-dns=false',
    '--cluster-dns=c.test',
    '--cluster-gossip-port=2113',
    '--quorum-size=2',
  ]);
  for (const name of ['--gossip-seed', '--discover-via-dns', '--cluster-dns', '--cluster-gossip-port'])
    expect(warnings.join('\n')).toContain(`${name}: it is not needed: members find each other through the shared log.`);
  expect(warnings.join('\n')).toContain('--quorum-size: it is not needed: the majority follows from ClusterSize.');
});

test.each(['a', 'a:', 'a:x', 'a:1;b:2', 'a:1,,b:2', 'a b:1'])('%j is no seed', (text) => {
  expect(problems([`--gossip-seed=${text}`, '--cluster-size=1'])).toEqual([expect.stringContaining('host:port')]);
});
