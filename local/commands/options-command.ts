import type { CompressionMode } from '../../core/backup/repository/api.ts';
import type { RecordPosition } from '../../core/ports/file-format.ts';
import type { PasswordFormat } from '../../core/security/api.ts';
import { ADMINISTRATORS } from '../../core/base/principal.ts';
import { parseTimestamp } from '../../core/base/time.ts';
import { SCHEME_NAMES } from '../../core/webhook/format/schemes.ts';
import { caOption, nodeOption } from '../cli/command.ts';
import { address, flag, integer, text, texts } from '../../infra/runtime/command-options.ts';
import type { Option } from '../../infra/runtime/command-options.ts';
import { size } from '../../infra/runtime/config/kinds.ts';
import { indexOption, keepDataOption, runOptions, untilCleanOption } from '../scavenge/scavenge-options.ts';

const PARALLEL_MAX = 16;
const KEPT_MAX = 10_000;
const THROTTLE_MIN_BYTES = 65_536;
const THROTTLE_MAX_BYTES = 1_099_511_627_776;
/** With a zone, so that the machine's zone surprises no user. */
const TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,7})?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** Which files are backed up: those of a running node, or of a stopped directory. */
const sourceOptions = {
  node: nodeOption,
  ca: caOption,
  db: text('DIR', null, 'Data directory of a stopped node, instead of a running one'),
  index: indexOption,
  'pause-scavenge': flag('Stop a running scavenge or pause auto-scavenge in a cycle, and resume both afterwards'),
};

/** How a repository is reached; `repository` itself is required by what uses it. */
const placeOptions = {
  repository: text(
    'R',
    null,
    'The repository: a directory, or s3://bucket/prefix (credentials as the AWS tools take them)',
  ),
  'key-file': text('FILE', null, 'Key of an encrypted repository, from `skua backup key`'),
  's3-endpoint': address('URL', 'that of AWS, or AWS_ENDPOINT_URL_S3', 'S3-compatible server'),
  's3-region': text('REGION', null, 'Region of the bucket', 'AWS_REGION'),
};

/** Where the objects of a store are, for commands that look at data. */
const storageOptions = {
  storage: text(
    'PLACE',
    null,
    'Read object storage instead, the --storage of `skua start`: s3://bucket/prefix, or a directory of objects',
  ),
  's3-endpoint': placeOptions['s3-endpoint'],
  's3-region': placeOptions['s3-region'],
};

const compressionOption = oneOf<CompressionMode>(
  ['off', 'auto', 'on'],
  'auto',
  'Compress what is stored (zstd); auto does so in buckets, where it pays, and in a directory only with files that are mostly zeros',
);
const parallelOption = integer('COUNT', 1, PARALLEL_MAX, 4, 'Files to work on at a time');
const throttleOption = bytes('Most bytes a second, such as 20MiB', THROTTLE_MIN_BYTES, THROTTLE_MAX_BYTES);
const jsonOption = flag('Report as JSON, sizes in bytes');
const auditOption = text('FILE', null, 'Audit file in which to record this, as in the option --audit-log of a node');
const backupOption = text('ID', null, 'The backup, by its id or a prefix of it', 'the newest');

const keepOptions = {
  'keep-last': kept('Number of newest backups to keep'),
  'keep-hourly': kept('Number of newest hours (UTC) with backups, of each of which to keep the last'),
  'keep-daily': kept('Number of newest days (UTC) with backups, of each of which to keep the last'),
  'keep-weekly': kept('Number of newest weeks (Monday to Sunday, UTC) with backups, of each of which to keep the last'),
};

function kept(help: string): Option<number> {
  return { ...integer('N', 0, KEPT_MAX, 0, help), fallbackText: '' };
}

/** One of several words. */
function oneOf<T extends string>(words: readonly T[], fallback: T, help: string): Option<T> {
  const parse = (given: string) =>
    words.includes(given as T) ? { value: given as T } : { allowed: words.join(', ').replace(/, (?=[^,]*$)/, ' or ') };
  return { placeholder: words.join('|'), fallback, fallbackText: fallback, help, parse };
}

/** A number of bytes with an optional unit; null unless given. */
export function bytes(help: string, min: number, max: number): Option<number | null> {
  return { placeholder: 'SIZE', fallback: null, fallbackText: '', help, parse: size({ min, max }).parse };
}

/** A share, `10%` or `0.1`; what is above 0 and at most 1. */
function share(fallback: number, help: string): Option<number> {
  const parse = (given: string) => {
    const parts = /^(\d{1,3}(?:\.\d{1,4})?)(%?)$/.exec(given);
    const value = parts === null ? Number.NaN : Number(parts[1]) / (parts[2] === '%' ? 100 : 1);
    return value > 0 && value <= 1 ? { value } : { allowed: 'a share above 0 and up to 100%, such as 10%' };
  };
  return { placeholder: 'SHARE', fallback, fallbackText: `${fallback * 100}%`, help, parse };
}

/** A position in the log; null unless given. */
function position(help: string): Option<number | null> {
  const parse = (given: string) => {
    const value = /^\d{1,16}$/.test(given) ? Number(given) : Number.NaN;
    return Number.isSafeInteger(value) ? { value } : { allowed: 'a position in the log, a whole number from 0 on' };
  };
  return { placeholder: 'N', fallback: null, fallbackText: '', help, parse };
}

/** A moment in milliseconds since 1970; null unless given. */
function moment(help: string): Option<number | null> {
  const parse = (given: string) => {
    const value = TIME.test(given) ? parseTimestamp(given) : Number.NaN;
    return Number.isNaN(value)
      ? { allowed: 'a time with its zone, such as 2026-07-01T12:00:00Z or 2026-07-01T14:00:00+02:00' }
      : { value };
  };
  return { placeholder: 'TIME', fallback: null, fallbackText: '', help, parse };
}

const sizesJson = flag('Report as JSON, sizes in bytes');

export const scavengeStartOptions = {
  ...runOptions,
  watch: flag('Show progress until it has finished'),
  wait: flag('Wait until it has finished'),
  'until-clean': untilCleanOption,
  node: nodeOption,
  ca: caOption,
  json: sizesJson,
};

export const scavengeStopOptions = { node: nodeOption, ca: caOption, json: sizesJson };

export const scavengeStatusOptions = { node: nodeOption, ca: caOption, json: sizesJson };

export const scavengeWatchOptions = {
  node: nodeOption,
  ca: caOption,
  json: flag('One JSON object per line: progress, then the result'),
};

export const scavengeOfflineOptions = {
  ...runOptions,
  index: indexOption,
  'until-clean': untilCleanOption,
  'disable-scavenge-merging': flag('Do not merge small chunk files'),
  'keep-data-of-deleted-streams': keepDataOption,
  'audit-log': auditOption,
  json: sizesJson,
};

const reportJson = flag('Report as JSON');

export const autoScavengeOptions = { node: nodeOption, ca: caOption, json: reportJson };

export const backupCopyOptions = {
  full: flag('Copy everything, into an empty directory'),
  differential: flag('Bring a copy of the same node up to date: copy what is missing, remove what no longer exists'),
  snapshot: flag('Copy nothing: show in which order to take snapshots of the disks'),
  to: text('DIR', null, 'Directory for the copy'),
  ...sourceOptions,
  json: jsonOption,
};

export const backupCreateOptions = {
  ...placeOptions,
  ...sourceOptions,
  compression: compressionOption,
  parallel: parallelOption,
  throttle: throttleOption,
  json: jsonOption,
};

export const backupListOptions = { ...placeOptions, json: jsonOption };

export const backupVerifyOptions = {
  ...placeOptions,
  backup: {
    ...backupOption,
    help: 'Check only what this backup needs, by its id or a prefix of it',
    fallbackText: 'all',
  },
  'read-data-subset': share(
    1,
    'Share of the stored content to read, a different part every day; the existence of everything is checked in any case',
  ),
  json: flag('One JSON object per line: findings, then the summary'),
};

export const backupDrillOptions = {
  ...placeOptions,
  backup: backupOption,
  scratch: text(
    'DIR',
    null,
    'Folder for the restored data, which is removed afterwards',
    "the system's temporary folder",
  ),
  parallel: parallelOption,
  json: jsonOption,
};

export const backupPruneOptions = {
  ...placeOptions,
  ...keepOptions,
  erased: flag(
    'Remove backups that still hold what a scavenge has removed from the newest one, and at once all unused content, so that erased events are erased here too',
  ),
  'forget-node': text(
    'ID',
    null,
    'Remove all backups of this node, which no longer exists (`skua backup list` shows the ids); otherwise the newest of each node stays',
  ),
  'dry-run': flag('Change nothing: show what would be removed'),
  'audit-log': auditOption,
  json: jsonOption,
};

export const backupKeyOptions = { json: jsonOption };

const { repository: _, ...reach } = placeOptions;

export const restoreOptions = {
  from: text('R', null, 'Repository (a directory, or s3://bucket/prefix), or a directory with a file copy'),
  db: text('DIR', null, 'Data directory to restore to'),
  index: indexOption,
  backup: backupOption,
  'to-position': position('Restore the log up to this position'),
  'to-time': moment('Restore the state at this time'),
  'at-or-before': flag('With --to-time, if that time cannot be restored: take the nearest restore point before it'),
  force: flag('First remove the data in the directory'),
  'allow-damaged': flag('Restore what is intact in a damaged backup, and report what is lost'),
  redactions: text('FILE', null, 'More redactions to apply: lines of JSON, as GET /streams/%24redactions returns them'),
  'audit-log': auditOption,
  parallel: parallelOption,
  ...reach,
  json: jsonOption,
};

export const explainOptions = {
  node: nodeOption,
  ca: caOption,
  db: text('DIR', null, 'Data directory of a stopped node to read, instead of asking a running node'),
  index: indexOption,
  ...storageOptions,
  'keep-data-of-deleted-streams': keepDataOption,
  json: flag('Report as JSON, sizes in bytes'),
};

export const subscriptionsOptions = { node: nodeOption, ca: caOption, json: reportJson };

export const subscriptionsListOptions = {
  ...subscriptionsOptions,
  stream: text('STREAM', null, 'Only the groups of this stream'),
};

export const subscriptionsReplayOptions = {
  ...subscriptionsOptions,
  'stop-at': optionalNumber('Only parked messages with lower numbers'),
};

export const subscriptionsResetOptions = {
  ...subscriptionsOptions,
  from: text(
    'FROM',
    null,
    'Where to start: start, end, the number of an event, or for groups of $all a position such as C:1024/P:1024',
  ),
};

function optionalNumber(help: string): Option<number | null> {
  return { ...integer('N', 0, 2_147_483_647, 0, help), fallback: null, fallbackText: 'all' };
}

export const userListOptions = {
  node: nodeOption,
  ca: caOption,
  db: text('DIR', null, 'Data directory of a stopped node to read, instead of asking a running node'),
  index: indexOption,
  json: reportJson,
};

const formatOption: Option<PasswordFormat | null> = {
  ...oneOf<PasswordFormat>(
    ['strong', 'compatible'],
    'strong',
    'Format to store it in, as in the option PasswordFormat of a node',
  ),
  fallback: null,
  fallbackText: 'the current format',
};

export const userResetPasswordOptions = {
  db: text('DIR', null, 'Data directory of the node'),
  index: indexOption,
  'password-file': text(
    'FILE',
    null,
    'File with the password on one line; - for standard input',
    'standard input, or typed',
  ),
  'password-format': formatOption,
  administrator: flag(`Also add the user to ${ADMINISTRATORS}; create the user if it does not exist`),
  enable: flag('Enable the user if disabled'),
  'audit-log': auditOption,
  json: reportJson,
};

export const proveErasedOptions = {
  stream: text('NAME', null, 'Search for every event of this stream'),
  event: texts('ID', 'Search for the event with this id; can be repeated'),
  db: text('DIR', './data', 'Data directory to search'),
  index: indexOption,
  storage: storageOptions.storage,
  ...placeOptions,
  repository: text('R', null, 'Search the backups of this repository instead: a directory, or s3://bucket/prefix'),
  'allow-unknown': flag('Exit code 0 even where nothing shows that there ever was such a stream or event'),
  json: flag('One JSON object per line: findings, then the summary'),
};

export const redactOptions = {
  node: nodeOption,
  ca: caOption,
  event: texts('N', 'Redact the event with this number; can be repeated'),
  id: texts('UUID', 'Redact the event with this id; can be repeated. Give numbers or ids, not both'),
  reason: text('TEXT', null, 'Why; it is kept in the log, so leave out what is to be removed'),
  metadata: texts('NAME', 'Remove this event metadata, too, whose name begins with $; can be repeated'),
  preview: flag('Only show which events it would take'),
  yes: flag('Do not ask for confirmation'),
  json: reportJson,
};

export const indexesStatusOptions = {
  node: nodeOption,
  ca: caOption,
  watch: flag('Show the progress until all indexes are built'),
  json: reportJson,
};

const switchOption = (help: string): Option<'on' | 'off' | null> => ({
  ...oneOf<'on' | 'off'>(['on', 'off'], 'on', help),
  fallback: null,
  fallbackText: 'unchanged',
});

export const indexesSetOptions = {
  node: nodeOption,
  ca: caOption,
  names: switchOption('Categories and event types'),
  correlations: switchOption('$correlationId of event metadata'),
  tags: switchOption('$tags of event metadata'),
  json: reportJson,
};

export const proofExportOptions = {
  db: text('DIR', './data', 'Data directory of a stopped node'),
  index: indexOption,
  event: text('STREAM/NUMBER', null, 'Export the proof of this one event instead of an anchor'),
  position: position('The same for the record at this position of the log'),
  anchor: text(
    'FILE',
    null,
    'Anchor that the proof of an event leads to; the last one if the file has several lines',
    'a new one, included in the proof',
  ),
  out: text('FILE', null, 'Write it to a new file', 'standard output'),
};

export const proofVerifyOptions = {
  anchor: text('FILE', null, 'The anchor, or a file with one per line, as --proof-anchor of a node writes it'),
  until: moment('Only anchors made by this time: for a directory that was restored to an earlier state'),
  db: text('DIR', './data', 'Data directory, or a copy of one'),
  ...placeOptions,
  repository: text('R', null, 'Verify a backup of this repository instead: it is restored to a temporary folder'),
  backup: backupOption,
  event: text('FILE', null, 'Verify the proof of one event instead, which needs no directory'),
  strict: flag('Treat removals and redactions after the newest anchor, whose receipts no anchor covers, as errors'),
  json: flag('One JSON object per line: findings, then the summary'),
};

export const verifyOptions = {
  index: text('DIR', null, 'Folder of the index', 'index in the data directory'),
  ...storageOptions,
  json: flag('One JSON object per line: findings, then the summary'),
};

/**
 * A place of a record: a position in the log, or an offset in the file behind `@`; decimal, or hexadecimal behind `0x`.
 * Null unless given.
 */
const recordPlace: Option<RecordPosition | null> = {
  placeholder: 'PLACE',
  fallback: null,
  fallbackText: '',
  help: 'Show one record in full: at this log position, or after @ at this offset in the file (also without @ if records have no position), such as 8192, 0x2000 or @0x2080',
  parse: (given) => {
    const parts = /^(@?)(\d{1,16}|0x[0-9a-f]{1,14})$/i.exec(given);
    const value = parts === null ? Number.NaN : Number(parts[2]);
    return Number.isSafeInteger(value)
      ? { value: { by: parts![1] === '' ? 'position' : 'offset', value } }
      : { allowed: 'a position such as 8192 or 0x2000, or an offset such as @8320' };
  },
};
const LIMIT_MAX = 1_000_000_000;

export const inspectOptions = {
  at: recordPlace,
  limit: integer(
    'N',
    0,
    LIMIT_MAX,
    50,
    'Records to show, starting with the first; 0 for all. The others are still read and counted',
  ),
  data: flag('Show event data in full, instead of its beginning'),
  'key-file': placeOptions['key-file'],
  's3-endpoint': placeOptions['s3-endpoint'],
  's3-region': placeOptions['s3-region'],
  json: flag('One JSON object per line: the file, its parts, records, damage, then a summary'),
};

/** The year 9999. */
const TIMESTAMP_MAX_S = 253_402_300_799;
const TIMEOUT_MAX_S = 3_600;
const SCRIPT_TIMEOUT_MAX_MS = 10_000;

function timestamp(help: string): Option<number | null> {
  const { parse } = integer('SECONDS', 0, TIMESTAMP_MAX_S, 0, help);
  return { placeholder: 'SECONDS', fallback: null, fallbackText: 'now', help, parse };
}

export const webhookTestOptions = {
  header: texts('NAME=VALUE', 'A header of the call; can be repeated'),
  query: texts('NAME=VALUE', 'A query parameter of the call; can be repeated'),
  stream: texts(
    'NAME',
    'A stream that the connector may write to, as in its setting streams, with * at the end for a prefix; can be repeated',
  ),
  'script-timeout-ms': integer(
    'MS',
    1,
    SCRIPT_TIMEOUT_MAX_MS,
    100,
    'CPU time limit of the script, as Webhook:ScriptTimeoutMs of the node',
  ),
  json: flag('One JSON object: outcome, stream, schema, error, durationMs'),
};

export const webhookSendOptions = {
  scheme: text('NAME', null, `Signature scheme: ${SCHEME_NAMES.join(', ')}. Without it the call is not signed`),
  'secret-file': text('FILE', null, 'File with the secret; a trailing newline is ignored'),
  id: text('ID', null, 'Delivery id, for schemes that send one: calls with the same id are written once', 'a new one'),
  timestamp: timestamp('Time of signing, in Unix seconds'),
  header: texts('NAME=VALUE', 'An additional header, or another value for one; can be repeated'),
  'content-type': text('TYPE', 'application/json', 'Media type of the body'),
  'signature-header': text('NAME', null, 'For Generic: header with the signature'),
  'signature-prefix': text('TEXT', null, 'For Generic: text before the signature'),
  'signature-encoding': text('NAME', null, 'For Generic: hex or base64', 'hex'),
  'signature-hash': text('NAME', null, 'For Generic: sha256, sha1 or sha512', 'sha256'),
  ca: caOption,
  timeout: integer('SECONDS', 1, TIMEOUT_MAX_S, 60, 'How long to wait for the answer'),
  json: flag('One JSON object: status, meaning, id, durationMs'),
};

export const functionsServeOptions = {
  storage: text('PLACE', './data-functions', 'Where the data is: s3://bucket/prefix, or a directory'),
  port: integer('PORT', 0, 65_535, 2113, 'Port to listen on, on the loopback address; 0 for any free one'),
  instances: integer('COUNT', 1, 16, 2, 'Concurrent processes per function'),
  build: flag('Rebuild the bundles first, in a checkout'),
  'no-ticks': flag('Run the tick only on POST /tick, not every minute'),
};

export const demoOptions = {
  node: nodeOption,
  ca: caOption,
  db: text('DIR', './data', 'Data directory of that node, to search for erased events; skipped if it does not exist'),
  json: flag('Report as JSON'),
};

const MEMBERS_MAX = 9;

export const clusterTryOptions = {
  members: integer('COUNT', 1, MEMBERS_MAX, 3, 'Number of members to run'),
  db: text(
    'DIR',
    './data-cluster',
    'Directory for the shared log, the replicas and the log files; created if absent, and kept',
  ),
  port: integer(
    'PORT',
    1,
    65_000,
    2113,
    'Port of the first member; each further one is 10 higher, or any free port if that is taken',
  ),
};

export const clusterStatusOptions = {
  node: nodeOption,
  ca: caOption,
  watch: flag('Refresh every second until Ctrl+C, asking another member if that one does not respond'),
  json: flag('Report as JSON; with --watch one line per refresh'),
};

export const clusterResetOptions = {
  from: text('DIR', null, 'Data directory of a stopped member or single node: the new log starts at its end'),
  index: indexOption,
  storage: text('PLACE', null, 'Place for the new log: s3://bucket/prefix, or a directory; it must not hold a log'),
  's3-endpoint': placeOptions['s3-endpoint'],
  's3-region': placeOptions['s3-region'],
  yes: flag('Do not ask for confirmation'),
  'audit-log': auditOption,
  json: jsonOption,
};
