import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FilesystemStorage } from '../../../infra/fs/filesystem-storage.ts';
import {
  EMPTY,
  idOf,
  MARKER,
  orders,
  redactSecret,
  SECRET,
  WHOLE,
  within,
  write,
  writeOrders,
} from '../../backup/redactions-kit.ts';
import { readRawLog } from '../../scavenge/raw-log.ts';
import { run } from '../run.ts';

/** Backups, restores and redactions from the command line. */

let folder: string;
const at = (...names: string[]) => path.join(folder, ...names);

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-redactions-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const disk = (name: string) => new FilesystemStorage({ root: at(name) });

async function json(...words: string[]): Promise<Record<string, unknown>> {
  const { code, out, err } = await run(...words, '--json');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return JSON.parse(out) as Record<string, unknown>;
}

async function backUp(db: string): Promise<string> {
  const { backupId } = await json('backup', 'create', '--db', at(db), '--repository', at('backups'));
  return backupId as string;
}

function restore(db: string, ...more: string[]): Promise<Record<string, unknown>> {
  return json('restore', '--from', at('backups'), '--db', at(db), ...more);
}

function filesWithMarker(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && readFileSync(path.join(entry.parentPath, entry.name)).includes(MARKER))
    .map(({ name }) => name);
}

test('what was redacted behind a backup is empty in its restore, and gone with a scavenge', async () => {
  await within(disk('data'), (open) => writeOrders(open));
  const first = await backUp('data');
  await within(disk('data'), redactSecret);
  await backUp('data');
  const { code, out } = await run('restore', '--from', at('backups'), '--db', at('old'), '--backup', first);
  expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('1 event had been redacted later') });
  expect(await run('verify', at('old'))).toMatchObject({ code: 0, out: expect.stringContaining('redactions') });
  expect(filesWithMarker(at('old'))).not.toEqual([]);
  expect(await within(disk('old'), orders, { writeEpoch: false })).toEqual(EMPTY);
  expect((await run('scavenge', 'offline', at('old'))).code).toBe(0);
  expect(filesWithMarker(at('old'))).toEqual([]);
  expect(await within(disk('old'), orders)).toEqual(EMPTY);
  expect(await run('backup', 'drill', '--repository', at('backups'), '--backup', first)).toMatchObject({ code: 0 });
  expect(await run('backup', 'verify', '--repository', at('backups'))).toMatchObject({ code: 0 });
});

test('another event at the same position of another history stays readable', async () => {
  const still = { writeEpoch: false };
  await within(disk('data'), (open) => write(open, 0, '0'));
  const first = await backUp('data');
  await within(disk('data'), (open) => write(open, 1, MARKER), still);
  await within(disk('data'), (open) => redactSecret(open, { numbers: [1] }), still);
  await backUp('data');
  expect(await restore('other', '--backup', first)).toMatchObject({ redacted: 0 });
  await within(disk('other'), (open) => write(open, 2, MARKER), still);
  const positions = async (db: string) =>
    (await readRawLog(disk(db))).filter(({ prepare }) => prepare?.stream === 'orders').map(({ position }) => position);
  expect(await positions('other')).toEqual(await positions('data'));
  const third = await backUp('other');
  expect(await restore('again', '--backup', third)).toMatchObject({ redacted: 0 });
  expect(await within(disk('again'), orders)).toEqual(['{"card":"0"}', `{"card":"${MARKER}"}`]);
});

test('a copy of files takes redactions from a file of lines', async () => {
  await within(disk('data'), (open) => writeOrders(open));
  await json('backup', 'copy', '--full', '--db', at('data'), '--to', at('copy'));
  const [event] = (await within(disk('data'), redactSecret)).events;
  const restored = async (name: string, ...more: string[]) =>
    json('restore', '--from', at('copy'), '--db', at(name), ...more);
  expect(await restored('unknown')).toMatchObject({
    redacted: 0,
    warnings: [expect.stringContaining('--redactions')],
  });
  expect(await within(disk('unknown'), orders)).toEqual(WHOLE);
  const data = { stream: 'orders', number: SECRET, id: idOf(SECRET), position: event!.position, by: 'a', reason: 'b' };
  const lines = [{ data }, { eventNumber: 1, data: JSON.stringify({ ...data, position: 1, metadata: ['$x'] }) }];
  writeFileSync(at('marks'), `${lines.map((each) => JSON.stringify(each)).join('\n')}\n\n`);
  expect(await restored('known', '--redactions', at('marks'))).toMatchObject({ redacted: 1, warnings: [] });
  expect(await within(disk('known'), orders)).toEqual(EMPTY);
  writeFileSync(at('marks'), `${JSON.stringify(lines[0])}\n{"data":"{}"}\n`);
  const words = ['restore', '--from', at('copy'), '--db', at('none'), '--redactions'];
  expect(await run(...words, at('marks'))).toMatchObject({
    code: 1,
    err: expect.stringMatching(/invalid_mark.*Line 2/s),
  });
  expect(await run(...words, at('missing'))).toMatchObject({
    code: 3,
    err: expect.stringContaining('file_unreadable'),
  });
});

test('the report of an erasure says who asked and when, the anchor of the chain, and until when backups hold it', async () => {
  await within(disk('data'), (open) => writeOrders(open), { beginsProofs: true });
  const first = await backUp('data');
  await within(disk('data'), redactSecret);
  expect((await run('scavenge', 'offline', at('data'))).code).toBe(0);
  const event = ['prove-erased', '--event', idOf(SECRET)];
  const summaryOf = (out: string) => JSON.parse(out.trim().split('\n').at(-1)!) as Record<string, unknown>;
  const proved = await run(...event, '--db', at('data'), '--json');
  expect(proved.code).toBe(0);
  const { chain, ...summary } = summaryOf(proved.out);
  const isoTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) as string;
  expect(summary).toMatchObject({
    traces: 0,
    searchedAt: isoTime,
    redactions: [{ stream: 'orders', number: SECRET, by: 'ann', reason: 'a card number', time: isoTime }],
    deletions: [],
  });
  // The verifier, which shares no code with what made it, holds the anchor for one of this directory.
  writeFileSync(at('anchor'), JSON.stringify({ ...(chain as object), madeAt: summary.searchedAt }));
  expect(await run('proof', 'verify', '--db', at('data'), '--anchor', at('anchor'))).toMatchObject({ code: 0 });
  const { position, link } = chain as { position: number; link: string };
  expect(position).toBeGreaterThan(0);
  const text = (await run(...event, '--db', at('data'))).out;
  expect(text).toContain(`anchor at position ${position}, hash ${link}`);
  expect(text).toMatch(/was redacted by ann at \S+Z: a card number/);
  expect(text).not.toContain('No sign');
  expect(text).toMatch(/Searched \d+ files \(.*, with the space set aside in them\)/);
  const backups = await run(...event, '--repository', at('backups'));
  expect(backups.code).toBe(1);
  // That backup knows of no mark: neither the stream's last event nor a delete is what stands in the way.
  const never = '00000000-0000-4000-8000-00000000000a';
  const both = await run(...event, '--event', never, '--repository', at('backups'), '--json');
  expect(summaryOf(both.out)).toMatchObject({ traces: 1, unknownEvents: [never] });
  expect(backups.out).not.toContain('keeps the last event');
  expect(backups.out).toContain('was made before they were removed');
  expect(backups.out).toMatch(new RegExp(`Until it is pruned: backup ${first} of \\S+Z, 1 trace`));
  await within(disk('bare'), (open) => writeOrders(open));
  const bare = await run(...event, '--db', at('bare'));
  expect(bare.out).toContain('--proof-chain');
  expect(summaryOf((await run(...event, '--db', at('bare'), '--json')).out)).toMatchObject({
    chain: null,
    chainNote: expect.stringContaining('--proof-chain'),
  });
});
