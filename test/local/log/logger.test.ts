import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { LogFiles, logFileName } from '../../../local/log/log-files.ts';
import type { LogFileSettings } from '../../../local/log/log-files.ts';
import { jsonLine, localTime } from '../../../infra/runtime/log-line.ts';
import { createLog, createNodeLog, logFolder } from '../../../local/log/logger.ts';
import type { LogSettings } from '../../../local/log/logger.ts';

const NOW_MS = Date.UTC(2031, 3, 2, 9, 15, 30, 250);
let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'skua-log-'));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function setUp(settings: Partial<LogSettings> = {}, isTTY = false) {
  const written: string[] = [];
  const stderr = {
    isTTY,
    write: (text: string) => {
      written.push(text);
    },
  };
  const log = createNodeLog({ stderr, env: {} }, { level: 'info', nowMs: () => NOW_MS, ...settings });
  return { log, written, lines: () => written.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

const files = (more: Partial<LogFileSettings> = {}): LogFileSettings => ({
  folder: logFolder(root, '127.0.0.1', 2113),
  sizeBytes: 1_000_000,
  interval: 'Infinite',
  retention: 31,
  ...more,
});
const folder = () => path.join(root, '127.0.0.1-2113-cluster-node');
const linesOf = (name: string) =>
  readFileSync(path.join(folder(), name), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('lines on the console', () => {
  test('are JSON with the documented members', () => {
    const { log, lines } = setUp();
    log.info('listening', { url: 'http://127.0.0.1:2113', '@t': 'mine' });
    log.debug('left out');
    expect(lines()).toEqual([
      {
        '@t': localTime(NOW_MS),
        '@mt': 'listening',
        '@l': 'Information',
        url: 'http://127.0.0.1:2113',
        '@@t': 'mine',
        SourceContext: 'Skua',
        ProcessId: process.pid,
      },
    ]);
    expect(Date.parse(String(lines()[0]!['@t']))).toBe(NOW_MS);
    expect(lines()[0]!['@t']).toMatch(/^2031-04-0\dT\d\d:\d\d:30\.250[+-]\d\d:\d\d$/);
  });

  test('hold errors with their code, data and stack', () => {
    const { log, lines } = setUp();
    log.error('failed', { error: new SkuaError('io_error', 'No.', { path: 'a' }, new Error('the cause')) });
    const [line] = lines();
    expect(line).toMatchObject({
      '@l': 'Error',
      error: { code: 'io_error', message: 'No.', data: { path: 'a' }, cause: { message: 'the cause' } },
    });
    expect(line!['@x']).toContain('SkuaError: No.');
    expect(line!['@x']).toContain(' ---> Error: the cause');
  });

  test('are plain when asked for, and for a terminal', () => {
    const plain = setUp({ format: 'Plain' });
    plain.log.warn('low space\n[1,1,now,ERR] forged', { bytes: 5, name: 'a\u001B[2Kb' });
    expect(plain.written[0]).toMatch(
      new RegExp(
        `^\\[${process.pid},1,\\d\\d:\\d\\d:30\\.250,WRN\\] low space\\\\n\\[1,1,now,ERR\\] forged bytes=5 name=a\\\\u001b\\[2Kb\n$`,
      ),
    );
    const terminal = setUp({}, true);
    terminal.log.info('listening', { port: 1 });
    expect(terminal.written[0]).toContain('listening');
    expect(terminal.written[0]!.startsWith('\r\u001B[2K')).toBe(true);
    const json = setUp({ format: 'Json' }, true);
    json.log.info('listening');
    expect(json.lines()[0]!['@mt']).toBe('listening');
  });

  test('follow a level that changes', () => {
    const { log, lines } = setUp({ level: 'error' });
    log.warn('a');
    log.setLevel('debug');
    log.debug('b');
    expect(log.level).toBe('debug');
    log.setLevel('off');
    log.error('c');
    expect(lines().map((line) => line['@mt'])).toEqual(['b']);
  });

  test('are bounded and never fail', () => {
    const { log, written, lines } = setUp();
    const round: Record<string, unknown> = { big: 12n, f: () => 1, bytes: new Uint8Array(9), set: new Set([1]) };
    round['self'] = round;
    const wide = (depth: number): unknown => (depth === 0 ? 'x' : Array.from({ length: 60 }, () => wide(depth - 1)));
    log.info('m'.repeat(100_000), { round, wide: wide(3), long: 'x'.repeat(1_000_000) });
    log.info('many', Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`field${n}`, 'x'.repeat(50)])));
    log.info('bad', {
      get broken() {
        throw new Error('getter');
      },
    });
    for (const line of written) expect(line.length).toBeLessThan(65_536);
    expect(lines()[0]).toMatchObject({ round: { big: '12', bytes: '9 bytes', set: [1] } });
    expect(lines()[1]!['isTruncated']).toBe(true);
    expect(lines()[2]).toMatchObject({ '@mt': 'bad', logging: 'Error: getter' });
  });

  test('createLog is the same without settings', () => {
    const written: string[] = [];
    const output = {
      write: (text: string) => {
        written.push(text);
      },
    };
    createLog({ stderr: output, env: {} }, 'warn').warn('a');
    expect(JSON.parse(written[0]!)).toMatchObject({ '@l': 'Warning', '@mt': 'a' });
  });
});

describe('log files', () => {
  test('are three families, each begun with its first line', async () => {
    const { log } = setUp({ files: files() });
    log.info('one', { n: 1 });
    await log.close();
    expect(readdirSync(folder())).toEqual(['log.json']);

    const again = setUp({ files: files() });
    again.log.warn('two', { error: new Error('with a stack') });
    again.log.error('three');
    again.log.stats({ proc: { id: 1 } });
    await again.log.close();
    expect(readdirSync(folder()).sort()).toEqual(['log-err.json', 'log-stats.json', 'log.json']);
    expect(linesOf('log.json').map((line) => line['@mt'])).toEqual(['one', 'two', 'three']);
    expect(linesOf('log-err.json').map((line) => line['@mt'])).toEqual(['two', 'three']);
    expect(linesOf('log-stats.json')).toMatchObject([{ stats: { proc: { id: 1 } } }]);
    expect(again.written).toHaveLength(2);
  });

  test('are named by their period in local time', () => {
    const at = new Date(2026, 10, 21, 7, 51).getTime();
    const names = (['Minute', 'Hour', 'Day', 'Month', 'Year', 'Infinite'] as const).map((interval) =>
      logFileName('log', interval, at, 1),
    );
    expect(names).toEqual([
      'log202611210751.json',
      'log2026112107.json',
      'log20261121.json',
      'log202611.json',
      'log2026.json',
      'log.json',
    ]);
    expect(logFileName('log-err', 'Day', at, 2)).toBe('log-err20261121_001.json');
    expect(logFileName('log', 'Infinite', at, 3)).toBe('log_002.json');
  });

  test.each(['Minute', 'Hour', 'Day', 'Month', 'Year'] as const)(
    'are written with the interval %s',
    async (interval) => {
      const { log } = setUp({ files: files({ interval }) });
      log.info('one');
      await log.close();
      expect(readdirSync(folder())).toEqual([expect.stringMatching(/^log\d{4,12}\.json$/)]);
    },
  );

  test('go on in another file at their size, and the oldest go', async () => {
    const target = new LogFiles(
      files({ sizeBytes: 4_096, retention: 3 }),
      () => {},
      () => NOW_MS,
    );
    const event = { atMs: NOW_MS, level: 'info' as const, message: 'x'.repeat(900), fields: {} };
    for (let i = 0; i < 40; i++) target.write(event, jsonLine(event));
    await target.close();
    const names = readdirSync(folder()).sort();
    const numbers = names.map((name) => Number(/^log_(\d{3})\.json$/.exec(name)![1]));
    expect(numbers).toEqual([numbers[2]! - 2, numbers[2]! - 1, numbers[2]]);
    expect(numbers[2]).toBeGreaterThan(5);
    // A new process goes on behind the last one.
    const next = new LogFiles(
      files({ sizeBytes: 4_096, retention: 3 }),
      () => {},
      () => NOW_MS,
    );
    next.write(event, jsonLine({ ...event, message: 'the last' }));
    await next.close();
    const all = readdirSync(folder())
      .flatMap((name) => linesOf(name))
      .map((line) => line['@mt']);
    expect(all.filter((message) => message === 'the last')).toHaveLength(1);
    expect(readdirSync(folder()).length).toBeLessThanOrEqual(3);
  });

  test('go on behind a folder with the name of one, which stays, and the oldest go', async () => {
    mkdirSync(path.join(folder(), 'log_001.json'), { recursive: true });
    const troubles: unknown[] = [];
    const target = new LogFiles(
      files({ sizeBytes: 4_096, retention: 3 }),
      (_file, error) => troubles.push(error),
      () => NOW_MS,
    );
    const event = { atMs: NOW_MS, level: 'info' as const, message: 'x'.repeat(900), fields: {} };
    for (let i = 0; i < 40; i++) target.write(event, jsonLine(event));
    await target.close();
    expect(readdirSync(folder())).toContain('log_001.json');
    expect(readdirSync(folder())).toHaveLength(4);
    expect(troubles).toEqual([]);
  });

  test('that can not be written cost one warning, and nothing else', async () => {
    writeFileSync(path.join(root, 'file'), '');
    const { log, lines } = setUp({ files: files({ folder: path.join(root, 'file', 'logs') }) });
    log.error('one');
    await expect.poll(() => lines().length, { timeout: 600_000 }).toBe(2);
    log.error('two');
    await log.close();
    expect(lines().map((line) => line['@mt'])).toEqual([
      'one',
      expect.stringContaining('log files cannot be written'),
      'two',
    ]);
    expect(lines()[1]!['@x']).toContain('ENOTDIR');
  });

  test.skipIf(process.platform !== 'linux')('where no folder can be made cost one warning, and no time', async () => {
    const { log, lines } = setUp({ files: files({ folder: '/proc/skua/logs' }) });
    log.error('one');
    log.error('two');
    await log.close();
    expect(lines().map((line) => line['@mt'])).toEqual([
      'one',
      expect.stringContaining('log files cannot be written'),
      'two',
    ]);
    expect(lines()[1]!['@x']).toContain("/proc/skua can't be created in /proc");
  });

  test('of others in the folder stay, also with names that are nearly those of a family', async () => {
    const strangers = [
      'notes.txt',
      'log1.json',
      'log20.json',
      'log_1.json',
      'log.json.bak',
      'logs.json',
      'log-old.json',
    ];
    mkdirSync(folder(), { recursive: true });
    for (const name of strangers) writeFileSync(path.join(folder(), name), name);
    const target = new LogFiles(
      files({ sizeBytes: 4_096, retention: 1 }),
      () => {},
      () => NOW_MS,
    );
    const event = { atMs: NOW_MS, level: 'info' as const, message: 'x'.repeat(900), fields: {} };
    for (let i = 0; i < 20; i++) target.write(event, jsonLine(event));
    await target.close();
    expect(readdirSync(folder())).toHaveLength(strangers.length + 1);
    for (const name of strangers) expect(readFileSync(path.join(folder(), name), 'utf8')).toBe(name);
  });

  test('after close, lines go to the console only', async () => {
    const { log, written } = setUp({ files: files() });
    log.info('one');
    await log.close();
    log.info('two');
    await log.close();
    expect(written).toHaveLength(2);
    expect(linesOf('log.json')).toHaveLength(1);
  });

  test('of an IPv6 address have a name that every system allows', () => {
    expect(path.basename(logFolder(root, '::1', 2113))).toBe('__1-2113-cluster-node');
  });
});
