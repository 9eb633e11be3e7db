import { parseScheduleText } from '../../core/auto-scavenge/format/schedule-text.ts';
import type { CompressionMode } from '../../core/backup/repository/api.ts';
import type { Retention } from '../../core/backup/api.ts';
import { isSkuaError } from '../../core/base/errors.ts';
import type { ObjectLocation } from '../../core/ports/object-store.ts';
import { overlap, parseLocation } from '../../infra/objects/open-objects.ts';
import { anchorLocationKind, urlPlace } from '../../infra/anchors/anchor-locations.ts';
import type { Values } from '../../infra/runtime/config/options.ts';
import { readKeyFile } from '../cli/key-files.ts';

/** What the options of a node say about its backups. */
export interface BackupSettings {
  /** Null where the node makes none. */
  readonly place: ObjectLocation | null;
  /** As it is shown. */
  readonly placeText: string | null;
  /** Of commands that name the repository: where its key is, and its store. */
  readonly words: readonly string[];
  /** 32 bytes; null without encryption. */
  readonly key: Uint8Array | null;
  readonly compression: CompressionMode;
  /** As the port takes it; null for none. */
  readonly schedule: string | null;
  /** 0 for never. */
  readonly shipEveryMs: number;
  /** Null where all backups are kept. */
  readonly keep: Retention | null;
  readonly throttleBytesPerSecond: number;
  readonly parallel: number;
}

/** To be asked before the node opens anything. Rejects with what is wrong with the key file. */
export async function backupSettings(values: Values): Promise<BackupSettings> {
  const keyFile = values['Backup:KeyFile'];
  const keep = {
    last: values['Backup:KeepLast'],
    hourly: values['Backup:KeepHourly'],
    daily: values['Backup:KeepDaily'],
    weekly: values['Backup:KeepWeekly'],
  };
  const schedule = values['Backup:Schedule'];
  return {
    place: placeOf(values),
    placeText: values['Backup:Repository'],
    words: wordsOf(values),
    key: keyFile === null ? null : await readKeyFile(keyFile),
    compression: values['Backup:Compression'],
    schedule: schedule === null ? null : parseScheduleText(schedule).expression,
    shipEveryMs: values['Backup:ShipEverySec'] * 1_000,
    keep: keep.last + keep.hourly + keep.daily + keep.weekly === 0 ? null : keep,
    throttleBytesPerSecond: values['Backup:ThrottleBytesPerSec'],
    parallel: values['Backup:Parallel'],
  };
}

function wordsOf(values: Values): readonly string[] {
  const options = [
    ['--key-file', values['Backup:KeyFile']],
    ['--s3-endpoint', values['Backup:S3Endpoint']],
    ['--s3-region', values['Backup:S3Region']],
  ] as const;
  return options.flatMap(([name, value]) => (value === null ? [] : [name, value]));
}

function placeOf(values: Values): ObjectLocation | null {
  const repository = values['Backup:Repository'];
  return repository === null
    ? null
    : parseLocation(repository, { endpoint: values['Backup:S3Endpoint'], region: values['Backup:S3Region'] });
}

/** What is wrong with a place or a schedule, as a sentence; null when nothing is. */
export function placeProblem(values: Values): string | null {
  return problemOf(() => placeOf(values));
}

export function storageProblem(text: string): string | null {
  return problemOf(() => parseLocation(text));
}

/** Whether backups would lie with the data that they are of. Both places are sound. */
export function overlapsStorage(values: Values): boolean {
  const place = placeOf(values);
  return (
    place !== null &&
    values.Storage !== null &&
    storageProblem(values.Storage) === null &&
    overlap(place, parseLocation(values.Storage))
  );
}

/** As `placeProblem`, of the place for anchors. */
export function anchorLocationProblem(values: Values): string | null {
  const place = values['Proof:Anchor'];
  if (place === null) return null;
  switch (anchorLocationKind(place)) {
    case 'url':
      return problemOf(() => urlPlace(place));
    case 's3':
      return problemOf(() =>
        parseLocation(place, { endpoint: values['Proof:S3Endpoint'], region: values['Proof:S3Region'] }),
      );
    default:
      return place.includes('\0') || place.startsWith('~') || /^[a-z][a-z0-9+.-]*:\/\//i.test(place)
        ? 'it is not a file, an http(s) URL or s3://bucket/prefix.'
        : null;
  }
}

export function scheduleProblem(text: string): string | null {
  return problemOf(() => parseScheduleText(text));
}

function problemOf(parse: () => unknown): string | null {
  try {
    parse();
    return null;
  } catch (error) {
    if (isSkuaError(error, 'bad_option')) return error.message;
    if (isSkuaError(error, 'invalid_schedule')) return String(error.data.hint);
    throw error;
  }
}
