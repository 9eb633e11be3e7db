import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readNewPassword } from '../../../local/cli/password-input.ts';
import { FakeIo } from '../support.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-password-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** What is read from standard input, a terminal where `isTTY`; or the code of the error. */
async function read(
  typed: string | Uint8Array,
  { isTTY = false, file = null }: { isTTY?: boolean; file?: string | null } = {},
) {
  const stdin = Object.assign(new PassThrough(), { isTTY });
  stdin.end(typed);
  const io = Object.assign(new FakeIo(), { stdin });
  const result = await readNewPassword(file, 'kim', io).catch((error: Error & { code?: string }) => {
    expect(error.message).not.toMatch(/s3cret/);
    return { code: error.code };
  });
  expect(io.out + io.err).not.toContain('s3cret');
  return { result, err: io.err };
}

function given(bytes: string | Uint8Array): string {
  const file = path.join(folder, 'password');
  writeFileSync(file, bytes);
  return file;
}

describe('a pipe and a file hold one line', () => {
  test.each([
    ['s3cret\n', 's3cret'],
    ['s3cret', 's3cret'],
    ['s3cret\r\n', 's3cret'],
    [' s3cret ', ' s3cret '],
    ['s3crét\n', 's3crét'],
    ['', ''],
    ['\n', ''],
  ])('%j', async (text, password) => {
    expect((await read(text)).result).toBe(password);
    expect((await read('', { file: given(text) })).result).toBe(password);
    expect((await read(text, { file: '-', isTTY: true })).result).toBe(password);
  });
  test.each([
    ['s3cret\n2\n', 'invalid_user'],
    ['\ns3cret', 'invalid_user'],
    [new Uint8Array([115, 0xff]), 'invalid_user'],
    ['s3cret'.repeat(2_000), 'file_too_large'],
  ])('%#: not this', async (text, code) => {
    expect((await read(text)).result).toEqual({ code });
    expect((await read('', { file: given(text) })).result).toEqual({ code });
  });
  test('a file that is not there', async () => {
    expect((await read('', { file: path.join(folder, 'absent') })).result).toEqual({ code: 'file_unreadable' });
  });
});

describe('a terminal asks twice, and shows nothing', () => {
  test('the same twice, also pasted at once and mended with backspace', async () => {
    expect(await read('s3cret\rs3cret\r', { isTTY: true })).toEqual({
      result: 's3cret',
      err: 'New password of kim: \nRepeat it: \n',
    });
    expect((await read('s3cretx\u007f\rs3cret\r', { isTTY: true })).result).toBe('s3cret');
  });
  test.each([
    ['two that differ', 's3cret\rs3creT\r', 'invalid_user'],
    ['Ctrl+C', 's3cret\u0003', 'interrupted'],
    ['Ctrl+D', '\u0004', 'interrupted'],
    ['the end', 's3cret\r', 'interrupted'],
  ])('%s', async (_, keys, code) => {
    expect((await read(keys, { isTTY: true })).result).toEqual({ code });
  });
});
