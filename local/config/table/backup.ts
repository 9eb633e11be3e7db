import { integer, oneOf, path, size, text } from '../kinds.ts';
import { option, optional } from '../option.ts';

const COUNT_MAX = 10_000;
const SECONDS_PER_DAY = 86_400;
const kept = (of: string) => option(integer('COUNT', 0, COUNT_MAX), 0, `${of} that stay when a backup has been made; 0 for none of them. Nothing is removed where all four are 0`);

/** Options of the backups that a node makes of itself. All are ours. */
export const backup = {
  'Backup:Repository': optional(text('PLACE'), 'Where the node keeps backups of itself: a directory, or s3://bucket/prefix. Made when absent', { fallbackText: 'no backups by the node' }),
  'Backup:S3Endpoint': optional(text('URL'), 'Where the bucket is, for servers that speak the S3 protocol', { fallbackText: 'as the SDK finds it' }),
  'Backup:S3Region': optional(text('REGION'), 'Region of the bucket', { fallbackText: 'as the SDK finds it' }),
  'Backup:KeyFile': optional(path('FILE'), 'Key under which backups are encrypted, as `skua backup key` makes it. Keep a copy of it elsewhere: without it nothing can be restored', { fallbackText: 'not encrypted' }),
  'Backup:Compression': option(oneOf('MODE', ['auto', 'on', 'off']), 'auto', 'Compress what is stored: auto does so in a bucket, where it pays'),
  'Backup:Schedule': optional(text('CRON'), 'When the node makes a backup: minute, hour, day of month, month, day of week, in UTC, such as "30 2 * * *"', { fallbackText: 'only when asked' }),
  'Backup:ShipEverySec': option(integer('SECONDS', 0, SECONDS_PER_DAY), 0, 'How often the new end of the log is shipped to the repository, which bounds what can be lost; 0 for never'),
  'Backup:KeepLast': kept('Newest backups'),
  'Backup:KeepHourly': kept('Last backups of an hour'),
  'Backup:KeepDaily': kept('Last backups of a day'),
  'Backup:KeepWeekly': kept('Last backups of a week'),
  'Backup:ThrottleBytesPerSec': option(size({ min: 65_536, max: 1_099_511_627_776, or: 0 }), 0, 'Bytes that a backup reads in a second at most; 0 for no limit'),
  'Backup:Parallel': option(integer('COUNT', 1, 16), 4, 'Files of a backup that are worked on at once'),
};
