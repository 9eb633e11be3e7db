import type { NodeWarning } from '../../handlers/documents/node.ts';

/** What an operator should do something about, and what. A function of what is known of the node at the moment. */

const DAY_MS = 86_400_000;
/**
 * A licence that ends within so many days is warned of; within this part of them, as of those of a certificate, it is
 * an error.
 */
const LICENCE_REMIND_DAYS = 30;
const ERROR_PART = 7 / 30;
/** Shares of the disk that are free: below the first a warning, below the second an error. */
const FREE_WARN_SHARE = 0.15;
const FREE_ERROR_SHARE = 0.05;
/** A backup that is older than this is warned of, and so is a drill. */
const BACKUP_DAYS_MAX = 2;
const DRILL_DAYS_MAX = 31;
/** A log of so many chunk files should have been scavenged once. */
const CHUNKS_UNSCAVENGED_MAX = 4;
/** A bucket that a member has not heard of for longer. */
const BUCKET_SILENT_MS_MAX = 10_000;
/** Warnings of the configuration that are shown. */
const CONFIGURATION_MAX = 10;

export interface WarningFacts {
  readonly nowMs: number;
  readonly isInsecure: boolean;
  readonly hasDefaultPasswords: boolean;
  readonly hasTls: boolean;
  /** Others than this machine can reach the node. */
  readonly isReachable: boolean;
  readonly isInMemory: boolean;
  /** Of the certificate of the node; null without TLS. */
  readonly certificate: {
    readonly notAfterMs: number;
    readonly remindDays: number;
    readonly isMadeAtStart: boolean;
  } | null;
  readonly licence: { readonly refusal: string | null; readonly expiresAtMs: number | null };
  readonly disk: { readonly totalBytes: number; readonly freeBytes: number; readonly chunkSizeBytes: number } | null;
  /** Null where no backups can be made of the node. */
  readonly backups: {
    readonly place: string | null;
    readonly newestMs: number | null;
    readonly provenMs: number | null;
  } | null;
  /** Whether a scavenge was ever run here, as far as its history says. */
  readonly wasScavenged: boolean;
  readonly chunks: number;
  readonly isAuditFailing: boolean;
  readonly deadMembers: readonly string[];
  readonly bucketSilentMs: number;
  readonly logLevel: string;
  /** Sentences that say what to do. */
  readonly configuration: readonly string[];
}

const SEVERITIES: Readonly<Record<NodeWarning['severity'], number>> = { error: 0, warning: 1, info: 2 };

/** The severest first. */
export function warningsOf(facts: WarningFacts): NodeWarning[] {
  const warnings = [
    ...accessWarnings(facts),
    ...expiryWarnings(facts),
    ...diskWarnings(facts),
    ...backupWarnings(facts),
    ...clusterWarnings(facts),
    ...otherWarnings(facts),
  ];
  return warnings.toSorted((a, b) => SEVERITIES[a.severity] - SEVERITIES[b.severity]);
}

function accessWarnings({ isInsecure, hasDefaultPasswords, hasTls, isReachable }: WarningFacts): NodeWarning[] {
  const severity = isReachable ? 'error' : 'info';
  if (isInsecure)
    return [
      {
        code: 'insecure',
        severity,
        message: 'Security is off: anyone who can reach the node can do anything.',
        todo: 'Start it without `--insecure`, with a certificate, and change the passwords of admin and ops.',
        view: 'options',
      },
    ];
  const warnings: NodeWarning[] = [];
  if (hasDefaultPasswords)
    warnings.push({
      code: 'default-passwords',
      severity: isReachable ? 'error' : 'warning',
      message: 'The user admin or ops has the default password, or an empty one, which everybody knows.',
      todo: 'Change it as that user in the menu at the top right, or as an administrator under Users.',
      view: 'users',
    });
  if (!hasTls)
    warnings.push({
      code: 'no-tls',
      severity: isReachable ? 'warning' : 'info',
      message: 'TLS is off: passwords and events are sent in clear text.',
      todo: 'Give the node a certificate (`CertificateFile`) and start it without `--disable-tls`, or let a proxy on this machine terminate TLS.',
      view: 'options',
    });
  return warnings;
}

function expiryWarnings({ nowMs, certificate, licence }: WarningFacts): NodeWarning[] {
  const warnings: NodeWarning[] = [];
  const severityOf = (endsMs: number, remindDays: number): NodeWarning['severity'] | null => {
    const days = (endsMs - nowMs) / DAY_MS;
    return days < remindDays * ERROR_PART ? 'error' : days < remindDays ? 'warning' : null;
  };
  if (certificate !== null) {
    const { notAfterMs, remindDays, isMadeAtStart } = certificate;
    const severity = severityOf(notAfterMs, remindDays);
    const todo = isMadeAtStart
      ? 'Start the node again: it makes a new one.'
      : 'Replace it, and reload the configuration (POST /admin/reloadconfig).';
    if (severity !== null)
      warnings.push({
        code: 'certificate-expires',
        severity,
        message: `The certificate of the node ${untilText(notAfterMs, nowMs)}.`,
        todo,
        view: 'overview',
      });
  }
  if (licence.refusal !== null)
    warnings.push({
      code: 'licence-refused',
      severity: 'warning',
      message: 'Auto-scavenge has no licence and is off.',
      todo: licence.refusal,
      view: 'auto-scavenge',
    });
  else {
    const severity = licence.expiresAtMs === null ? null : severityOf(licence.expiresAtMs, LICENCE_REMIND_DAYS);
    if (severity !== null)
      warnings.push({
        code: 'licence-expires',
        severity,
        message: `The licence key ${untilText(licence.expiresAtMs!, nowMs)}.`,
        todo: 'Set a new one in Licensing:LicenseKey and restart the node.',
        view: 'auto-scavenge',
      });
  }
  return warnings;
}

function untilText(endsMs: number, nowMs: number): string {
  const days = Math.floor((endsMs - nowMs) / DAY_MS);
  return endsMs <= nowMs
    ? 'has expired'
    : days === 0
      ? 'expires within a day'
      : `expires in ${days} ${days === 1 ? 'day' : 'days'}`;
}

function diskWarnings({ disk, isInMemory }: WarningFacts): NodeWarning[] {
  if (isInMemory)
    return [
      {
        code: 'in-memory',
        severity: 'info',
        message: 'Data is kept in memory and lost when the node stops.',
        todo: 'Name a directory with --db to keep it.',
        view: 'options',
      },
    ];
  if (disk === null || disk.totalBytes === 0) return [];
  const share = disk.freeBytes / disk.totalBytes;
  // A log that goes on needs room for its next chunk, and a scavenge for a copy of one.
  const isShort = disk.freeBytes < 2 * disk.chunkSizeBytes;
  const severity = isShort || share < FREE_ERROR_SHARE ? 'error' : share < FREE_WARN_SHARE ? 'warning' : null;
  if (severity === null) return [];
  return [
    {
      code: 'disk-nearly-full',
      severity,
      message: `The data disk has ${Math.floor(share * 100)} % free${isShort ? ', which is less than two chunks' : ''}. Writes are refused when it is full.`,
      todo: 'Free space: scavenge, remove other files, or use a larger disk.',
      view: 'scavenge',
    },
  ];
}

function backupWarnings({ nowMs, backups, isInMemory }: WarningFacts): NodeWarning[] {
  if (backups === null || isInMemory) return [];
  const { place, newestMs, provenMs } = backups;
  if (place === null)
    return [
      {
        code: 'no-backup',
        severity: 'warning',
        message: 'The node has no backup repository.',
        todo: 'Set `Backup:Repository` and `Backup:Schedule`, or make backups with `skua backup create`.',
        view: 'backups',
      },
    ];
  if (newestMs === null)
    return [
      {
        code: 'no-backup',
        severity: 'warning',
        message: 'The repository has no known backup of this node.',
        todo: 'Start one, and set `Backup:Schedule`.',
        view: 'backups',
      },
    ];
  const warnings: NodeWarning[] = [];
  const days = Math.floor((nowMs - newestMs) / DAY_MS);
  if (days >= BACKUP_DAYS_MAX)
    warnings.push({
      code: 'backup-stale',
      severity: 'warning',
      message: `The newest backup of the node is ${days} days old.`,
      todo: 'Start one, and check the log for why none was made: no schedule, a running scavenge, an unreachable repository.',
      view: 'backups',
    });
  if (provenMs === null || nowMs - provenMs > DRILL_DAYS_MAX * DAY_MS)
    warnings.push({
      code: 'backup-unproven',
      severity: 'info',
      message:
        provenMs === null
          ? 'No backup has been tested by a drill yet.'
          : 'No backup has been tested by a drill for more than a month.',
      todo: 'Start a drill.',
      view: 'backups',
    });
  return warnings;
}

function clusterWarnings({ deadMembers, bucketSilentMs }: WarningFacts): NodeWarning[] {
  const warnings: NodeWarning[] = [];
  if (bucketSilentMs > BUCKET_SILENT_MS_MAX)
    warnings.push({
      code: 'bucket-silent',
      severity: 'error',
      message: `The bucket has not answered this member for ${Math.floor(bucketSilentMs / 1_000)} seconds: nothing can be written through it.`,
      todo: 'Check the network and the credentials of the bucket.',
      view: 'log',
    });
  if (deadMembers.length > 0)
    warnings.push({
      code: 'member-lost',
      severity: 'warning',
      ...(deadMembers.length === 1
        ? {
            message: `A member of the cluster is unreachable: ${deadMembers[0]}.`,
            todo: "Restart it, or find out why it can't reach the others.",
          }
        : {
            message: `${deadMembers.length} members of the cluster are unreachable: ${deadMembers.slice(0, 5).join(', ')}.`,
            todo: "Restart them, or find out why they can't reach the others.",
          }),
      view: 'overview',
    });
  return warnings;
}

function otherWarnings({ wasScavenged, chunks, isAuditFailing, logLevel, configuration }: WarningFacts): NodeWarning[] {
  const warnings: NodeWarning[] = configuration.slice(0, CONFIGURATION_MAX).map((message) => ({
    code: 'configuration',
    severity: 'info',
    message,
    todo: 'See the options of the node.',
    view: 'options',
  }));
  if (isAuditFailing)
    warnings.push({
      code: 'audit-failing',
      severity: 'error',
      message: "The audit can't be written: actions are not being recorded.",
      todo: 'Check the log for the reason, such as a full disk or missing permissions on its folder.',
      view: 'log',
    });
  if (!wasScavenged && chunks > CHUNKS_UNSCAVENGED_MAX)
    warnings.push({
      code: 'never-scavenged',
      severity: 'info',
      message: 'No scavenge has ever run: deleted and expired events still use space and can be read in $all.',
      todo: 'Use a dry run to see what one would remove, and set a schedule.',
      view: 'scavenge',
    });
  if (logLevel === 'debug')
    warnings.push({
      code: 'log-level-debug',
      severity: 'info',
      message: 'The log level is Verbose: everything is logged.',
      todo: 'Set the level back to info when you no longer need it.',
      view: 'log',
    });
  if (logLevel === 'off')
    warnings.push({
      code: 'log-off',
      severity: 'warning',
      message: 'Nothing is logged.',
      todo: 'Set LogLevel to Information.',
      view: 'options',
    });
  return warnings;
}
