import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { expect, test } from 'vitest';
import { backupSettings } from '../../../local/config/backup-settings.ts';
import { load, problems } from './support.ts';

const R = ['--backup-repository', 's3://backups/node'];

test.each([
  [['--backup-schedule', '0 2 * * *'], /--backup-schedule: no backup repository is set.*--backup-repository/],
  [
    ['--backup-ship-every-sec', '5', '--backup-keep-daily', '7'],
    /--backup-ship-every-sec, --backup-keep-daily: no backup repository is set/,
  ],
  [[...R, '--backup-schedule', 'daily'], /--backup-schedule: Give five fields/],
  [[...R, '--backup-schedule', '61 2 * * *'], /--backup-schedule: '61' is not a valid minute/],
  [['--backup-repository', 'http://example.com/x'], /--backup-repository: .*"http" is not known/],
  [['--backup-repository', 's3://'], /--backup-repository: .*the bucket is missing/],
  [[...R, '--backup-s3-endpoint', 'example.com'], /--backup-repository: The S3 endpoint must be a URL/],
  [['--db', '/srv/skua', '--backup-repository', '/srv/skua/backups'], /is in the data directory/],
  [['--db', '/srv/skua', '--backup-repository', '/srv/skua'], /is in the data directory/],
  [[...R, '--backup-throttle-bytes-per-sec', '100'], /--backup-throttle-bytes-per-sec/],
  [[...R, '--backup-compression', 'zip'], /auto, on, off/],
] as const)('%j is refused', (words, problem) => {
  const found = problems(words);
  expect(found).toHaveLength(1);
  expect(found[0]).toMatch(problem);
});

test.each([
  [['--db', '/srv/skua', '--backup-repository', '/srv/skua-backups']],
  [['--db', '/srv/skua', '--backup-repository', '/srv/..skua']],
  [['--mem-db', '--backup-repository', './data/backups']],
  [R],
])('%j is fine', (words) => {
  expect(problems(words)).toEqual([]);
});

test('settings are what the options say', async () => {
  expect(await backupSettings(load([]).values)).toEqual({
    place: null,
    placeText: null,
    words: [],
    key: null,
    compression: 'auto',
    schedule: null,
    shipEveryMs: 0,
    keep: null,
    throttleBytesPerSecond: 0,
    parallel: 4,
  });
  const folder = await mkdtemp(path.join(tmpdir(), 'skua-options-'));
  try {
    const keyFile = path.join(folder, 'key');
    await writeFile(keyFile, `${'0f'.repeat(32)}\n`);
    const words = [
      ...R,
      '--backup-s3-endpoint',
      'http://127.0.0.1:9000',
      '--backup-s3-region',
      'north-1',
      '--backup-key-file',
      keyFile,
      '--backup-compression',
      'on',
      '--backup-schedule',
      ' 0  2 * jan mon',
      '--backup-ship-every-sec',
      '5',
      '--backup-keep-last',
      '3',
      '--backup-keep-weekly',
      '4',
      '--backup-throttle-bytes-per-sec',
      '1 MiB',
      '--backup-parallel',
      '2',
    ];
    expect(await backupSettings(load(words).values)).toEqual({
      place: { kind: 's3', bucket: 'backups', prefix: 'node', endpoint: 'http://127.0.0.1:9000', region: 'north-1' },
      placeText: 's3://backups/node',
      words: ['--key-file', keyFile, '--s3-endpoint', 'http://127.0.0.1:9000', '--s3-region', 'north-1'],
      key: new Uint8Array(32).fill(15),
      compression: 'on',
      schedule: '0 2 * 1 1',
      shipEveryMs: 5_000,
      keep: { last: 3, hourly: 0, daily: 0, weekly: 4 },
      throttleBytesPerSecond: 1_048_576,
      parallel: 2,
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});
