import { BlockList } from 'node:net';
import * as path from 'node:path';
import { clusterProblems, isMember } from './cluster-settings.ts';
import {
  anchorLocationProblem,
  overlapsStorage,
  placeProblem,
  scheduleProblem,
  storageProblem,
} from './backup-settings.ts';
import { ConfigError } from '../../infra/runtime/config/option.ts';
import { anchorLocationKind } from '../../infra/anchors/anchor-locations.ts';
import type { Config } from './config.ts';
import type { Source } from '../../infra/runtime/config/merge.ts';
import type { OptionName, Values } from '../../infra/runtime/config/options.ts';

/** How connections are protected. */
type TlsMode = 'off' | 'dev' | 'certificates';

export function tlsModeOf({ Insecure, DisableTls, Dev }: Values): TlsMode {
  if (Insecure || DisableTls) return 'off';
  return Dev ? 'dev' : 'certificates';
}

/**
 * Combinations that a node refuses to start with: throws a ConfigError with all of them. Gives warnings of what will
 * be ignored.
 */
export function checkConfig(config: Config): string[] {
  const problems = [
    ...directoryProblems(config),
    ...memoryProblems(config),
    ...storageProblems(config),
    ...clusterProblems(config),
    ...autoScavengeProblems(config),
    ...backupProblems(config),
    ...proofProblems(config),
    ...proxyProblems(config),
    ...corsProblems(config),
  ];
  if (problems.length > 0) throw new ConfigError(problems);
  return ignored(config);
}

function directoryProblems({ values, spelling }: Config): string[] {
  const problems: string[] = [];
  for (const name of ['Db', 'Index', 'Log', 'AuditLog'] as const) {
    if (values[name]?.startsWith('~'))
      problems.push(`${spelling(name)} starts with ~, which only a shell expands: give the full path.`);
  }
  if (!values.MemDb && values.Index !== null && path.resolve(values.Db) === path.resolve(values.Index)) {
    problems.push(`${spelling('Index')} and ${spelling('Db')} are the same directory: give the index its own.`);
  }
  return problems;
}

/**
 * The weight of a source; an option of a weightier one may make one of a lighter one pointless, but not the reverse.
 */
const RANK: Readonly<Record<Source, number>> = {
  '<DEFAULT>': 0,
  Yaml: 1,
  'Environment Variables': 2,
  'Command Line': 3,
};

function memoryProblems(config: Config): string[] {
  if (!config.values.MemDb) return [];
  const rank = (name: OptionName) => RANK[config.settings.get(name)!.source];
  if (!(['Db', 'Index'] as const).some((name) => config.given(name) && rank(name) >= rank('MemDb'))) return [];
  return [
    `${config.spelling('MemDb')} keeps everything in memory: leave out ${config.spelling('Db')} and ${config.spelling('Index')}.`,
  ];
}

/** Files of the node itself, which there are none of where its data lie in object storage alone. */
const DIRECTORY_OPTIONS = ['Index', 'MemDb', 'Detach'] as const satisfies readonly OptionName[];

function storageProblems({ values, given, spelling }: Config): string[] {
  if (values.Storage === null) return [];
  const place = storageProblem(values.Storage);
  const problems = place === null ? [] : [`${spelling('Storage')}: ${place}`];
  const others = isMember(values, given) ? [] : DIRECTORY_OPTIONS.filter((name) => given(name));
  if (others.length > 0)
    problems.push(
      `${spelling('Storage')} keeps the data in object storage: leave out ${others.map(spelling).join(', ')}.`,
    );
  if (values['Backup:ShipEverySec'] > 0)
    problems.push(
      `${spelling('Backup:ShipEverySec')}: the log is already in object storage, so it is not shipped. Leave it out, and set ${spelling('Backup:Schedule')} to schedule backups.`,
    );
  if (placeProblem(values) === null && overlapsStorage(values)) {
    problems.push(
      `${spelling('Backup:Repository')} and ${spelling('Storage')} are inside each other, so both would be lost together: give the backups another prefix, or better another bucket.`,
    );
  }
  return problems;
}

/** Only where it was asked for: otherwise it is off, and says so. */
function autoScavengeProblems({ values, spelling }: Config): string[] {
  if (values['AutoScavenge:Enabled'] !== true || (!values.Dev && !values.MemDb)) return [];
  const [mode, option] = values.Dev ? (['dev mode', 'Dev'] as const) : (['mem-db', 'MemDb'] as const);
  return [
    `AutoScavenge is not compatible with ${mode}: leave out ${spelling('AutoScavenge:Enabled')} or ${spelling(option)}.`,
  ];
}

const KEEP_OPTIONS = [
  'Backup:KeepLast',
  'Backup:KeepHourly',
  'Backup:KeepDaily',
  'Backup:KeepWeekly',
] as const satisfies readonly OptionName[];

function backupProblems({ values, given, spelling }: Config): string[] {
  const problems: string[] = [];
  const repository = values['Backup:Repository'];
  const schedule = values['Backup:Schedule'];
  const wants = [
    ...(schedule === null ? [] : (['Backup:Schedule'] as const)),
    ...(values['Backup:ShipEverySec'] === 0 ? [] : (['Backup:ShipEverySec'] as const)),
    ...KEEP_OPTIONS.filter((name) => values[name] > 0),
  ];
  if (repository === null && wants.length > 0)
    problems.push(
      `${wants.map(spelling).join(', ')}: no backup repository is set. Set ${spelling('Backup:Repository')}.`,
    );
  const place = placeProblem(values);
  if (place !== null) problems.push(`${spelling('Backup:Repository')}: ${place}`);
  const when = schedule === null ? null : scheduleProblem(schedule);
  if (when !== null) problems.push(`${spelling('Backup:Schedule')}: ${when}`);
  if (
    repository !== null &&
    !repository.includes('://') &&
    !values.MemDb &&
    (values.Storage === null || isMember(values, given)) &&
    isWithin(repository, values.Db)
  ) {
    problems.push(
      `${spelling('Backup:Repository')} ${repository} is in the data directory, and would be lost with it: give another directory, preferably on another disk.`,
    );
  }
  return problems;
}

const PROOF_OPTIONS = ['Proof:Chain', 'Proof:Anchor'] as const satisfies readonly OptionName[];

function proofProblems({ values, given, spelling }: Config): string[] {
  const asked = PROOF_OPTIONS.filter((name) => (name === 'Proof:Chain' ? values[name] : values[name] !== null));
  if (asked.length === 0) return [];
  const names = asked.map(spelling).join(', ');
  if (values.MemDb)
    return [`${names}: data kept in memory only can't be proved. Leave out this option or ${spelling('MemDb')}.`];
  if (values.Storage !== null && !isMember(values, given))
    return [
      `${names}: the hash chain needs a directory, and this node keeps its data in object storage only. Leave it out, or give the node a replica with ${spelling('Db')}.`,
    ];
  const problems: string[] = [];
  const place = values['Proof:Anchor'];
  if (place === null) return problems;
  if (!values['Proof:Chain'])
    problems.push(
      `${spelling('Proof:Anchor')}: there is nothing to anchor without a hash chain. Enable it with ${spelling('Proof:Chain')}.`,
    );
  const why = anchorLocationProblem(values);
  if (why !== null) problems.push(`${spelling('Proof:Anchor')}: ${why}`);
  if (anchorLocationKind(place) === 'file' && isWithin(place, values.Db))
    problems.push(
      `${spelling('Proof:Anchor')} is in the data directory, where anyone who can change the log can change it too: give a file elsewhere, preferably on another machine.`,
    );
  if (values['Proof:LockDays'] > 0 && anchorLocationKind(place) !== 's3')
    problems.push(
      `${spelling('Proof:LockDays')} locks objects in a bucket: give ${spelling('Proof:Anchor')} as s3://bucket/prefix.`,
    );
  return problems;
}

/** A client that is believed to be a proxy may call itself any user. */
function proxyProblems({ values, spelling }: Config): string[] {
  if (!values.EnableTrustedAuth || values.TrustedProxies.length > 0) return [];
  return [
    `${spelling('EnableTrustedAuth')} trusts a proxy to name the user, and no proxy is configured: set ${spelling('TrustedProxies')} to the addresses to trust.`,
  ];
}

function isWithin(folder: string, parent: string): boolean {
  const relative = path.relative(path.resolve(parent), path.resolve(folder));
  return relative.split(path.sep)[0] !== '..' && !path.isAbsolute(relative);
}

/** Without users every web page that a person opens could read everything that this machine reaches. */
function corsProblems({ values, spelling }: Config): string[] {
  if (!values.Insecure || !values.CorsOrigins.includes('*')) return [];
  return [
    `${spelling('CorsOrigins')} * and ${spelling('Insecure')} together would let every web page read everything: list the origins.`,
  ];
}

const CERTIFICATE_OPTIONS = [
  'CertificateFile',
  'CertificatePrivateKeyFile',
  'CertificatePassword',
  'CertificatePrivateKeyPassword',
  'CertificateReservedNodeCommonName',
] as const satisfies readonly OptionName[];
const PASSWORD_OPTIONS = ['DefaultAdminPassword', 'DefaultOpsPassword'] as const satisfies readonly OptionName[];

function ignored({ values, given, spelling }: Config): string[] {
  const warnings: string[] = [];
  const warn = (names: readonly OptionName[], because: OptionName) => {
    for (const name of names)
      if (given(name)) warnings.push(`${spelling(name)} has no effect because of ${spelling(because)}.`);
  };
  if (values.Insecure) warn([...CERTIFICATE_OPTIONS, ...PASSWORD_OPTIONS, 'Dev'], 'Insecure');
  else if (values.DisableTls) warn([...CERTIFICATE_OPTIONS, 'Dev'], 'DisableTls');
  else if (values.Dev) warn(CERTIFICATE_OPTIONS, 'Dev');
  return warnings;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether only this machine reaches the address. IPv4 addresses in IPv6 clothing count as what they are. */
export function isLoopback(address: string): boolean {
  return loopback.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
}

/** With TLS on a node needs a certificate. To be called before the store is opened; throws a ConfigError. */
export function checkTls({ values, spelling }: Config): void {
  if (tlsModeOf(values) !== 'certificates') return;
  if (values.CertificateFile !== null) return;
  const keyAlone =
    values.CertificatePrivateKeyFile === null
      ? ''
      : ` ${spelling('CertificatePrivateKeyFile')} is only its private key.`;
  throw new ConfigError([
    `TLS is on and needs a certificate: give one with --certificate-file.${keyAlone} ` +
      'Or choose --dev (a self-signed one, for this machine), --disable-tls (no TLS, users and passwords stay), or --insecure (neither).',
  ]);
}

/**
 * Default passwords are known to everybody: a node that has them stays on its own machine unless told otherwise. To
 * be called when the users are known and before the node listens; throws a ConfigError.
 */
export function checkStart(config: Config, { hasDefaultPasswords }: { readonly hasDefaultPasswords: boolean }): void {
  checkTls(config);
  const { values, spelling } = config;
  if (!hasDefaultPasswords || values.Insecure || values.AllowDefaultPasswords || isLoopback(values.NodeIp)) return;
  throw new ConfigError([
    `${spelling('NodeIp')} ${values.NodeIp} is reachable from other machines, and the user admin or ops still has the default password or an empty one. ` +
      'Start on 127.0.0.1 and change the passwords, or set SERVER_DEFAULT_ADMIN_PASSWORD and SERVER_DEFAULT_OPS_PASSWORD before the first start on a directory, or permit them with --allow-default-passwords.',
  ]);
}
