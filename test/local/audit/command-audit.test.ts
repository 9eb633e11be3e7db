import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SkuaError } from '../../../core/base/errors.ts';
import { withAudit } from '../../../local/audit/command-audit.ts';
import { backupPruneCommand, restoreCommand } from '../../../local/commands/backup-command.ts';
import { EXIT } from '../../../infra/runtime/io.ts';
import { FakeIo } from '../support.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'skua-audit-'));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

const lines = () =>
  readdirSync(root)
    .filter((name) => /^audit\d{8}\.json$/.test(name))
    .flatMap((name) =>
      readFileSync(path.join(root, name), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    );

test('what a command does past any node stands in the audit, whatever came of it', async () => {
  const io = new FakeIo();
  const audit = { file: path.join(root, 'audit.json'), action: 'directory.restore', target: '/data' } as const;
  // What a node keeps for longer is not a command's to remove.
  for (let day = 1; day < 10; day++) writeFileSync(path.join(root, `audit2020010${day}.json`), '');
  expect(await withAudit(audit, io, async () => EXIT.ok)).toBe(EXIT.ok);
  expect(await withAudit(audit, io, async () => EXIT.failed)).toBe(EXIT.failed);
  await expect(
    withAudit(audit, io, () => Promise.reject(new SkuaError('repository_key', 'Another key.'))),
  ).rejects.toThrow('Another key.');
  expect(readdirSync(root)).toHaveLength(10);
  const told = readdirSync(root)
    .filter((name) => !name.startsWith('audit2020'))
    .flatMap((name) =>
      readFileSync(path.join(root, name), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    );
  expect(told.map(({ action, outcome, code, target }) => [action, outcome, code, target])).toEqual([
    ['directory.restore', 'success', undefined, '/data'],
    ['directory.restore', 'failed', undefined, '/data'],
    ['directory.restore', 'failed', 'repository_key', '/data'],
  ]);
  expect(told[0]!['user']).toEqual(expect.stringMatching(/./));
});

test('an audit that can not be written is told, and the command goes on', async () => {
  writeFileSync(path.join(root, 'file'), '');
  const io = new FakeIo();
  expect(
    await withAudit(
      { file: path.join(root, 'file', 'audit.json'), action: 'directory.restore', target: null },
      io,
      async () => EXIT.ok,
    ),
  ).toBe(EXIT.ok);
  expect(io.err).toContain('cannot be written');
});

test('restore and prune tell it', async () => {
  const io = new FakeIo();
  const options = (more: object) =>
    ({
      options: {
        'audit-log': path.join(root, 'audit.json'),
        'keep-last': 0,
        'keep-hourly': 0,
        'keep-daily': 0,
        'keep-weekly': 0,
        'dry-run': false,
        ...more,
      },
      given: new Set(),
      positionals: [],
    }) as never;
  await expect(
    restoreCommand.run(
      options({
        from: path.join(root, 'none'),
        db: path.join(root, 'db'),
        backup: null,
        'to-position': null,
        'to-time': null,
      }),
      io,
    ),
  ).rejects.toThrow();
  await expect(backupPruneCommand.run(options({ repository: path.join(root, 'none') }), io)).rejects.toThrow();
  expect(lines().map(({ action, outcome }) => [action, outcome])).toEqual([
    ['directory.restore', 'failed'],
    ['repository.prune', 'failed'],
  ]);
});
