import { randomBytes, randomUUID } from 'node:crypto';
import { link, open, readFile, rename, stat } from 'node:fs/promises';
import * as path from 'node:path';
import { removeFile } from '../../infra/fs/file-removal.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';

/** For its owner only. */
export const SECRET_MODE = 0o600;
/** For everybody to read. */
export const PUBLIC_MODE = 0o644;

interface FileToWrite {
  readonly file: string;
  readonly text: string;
  readonly mode: number;
}

/**
 * Writes files whole and durably, all or none where one is there already: `file_exists` unless `force`. They have their
 * mode from the beginning, also where they take the place of others.
 */
export async function writeKeyFiles(files: readonly FileToWrite[], force: boolean): Promise<void> {
  const written: { readonly temporary: string; readonly file: string }[] = [];
  try {
    for (const { file, text, mode } of files) {
      const temporary = `${file}.${randomUUID()}.tmp`;
      written.push({ temporary, file });
      await writeDurably(temporary, text, mode).catch((error: unknown) => {
        throw unwritable(file, error);
      });
    }
    for (const { temporary, file } of written) {
      // A link, unlike a rename, never takes the place of a file.
      await (force ? rename(temporary, file) : link(temporary, file)).catch((error: unknown) => {
        throw unwritable(file, error);
      });
    }
  } catch (error) {
    if (!force)
      for (const { temporary, file } of written)
        if (await areOne(temporary, file)) await removeFile(file, (name) => name === path.basename(file));
    throw error;
  } finally {
    for (const { temporary } of written) await removeFile(temporary, (name) => TEMPORARY.test(name));
  }
}

const TEMPORARY = /\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.tmp$/;

/** Whether the file is the one that was linked here, and none that stood there or was put there since. */
async function areOne(temporary: string, file: string): Promise<boolean> {
  const [one, other] = await Promise.all(
    [temporary, file].map((name) => stat(name, { bigint: true }).catch(() => null)),
  );
  return one != null && one.ino === other?.ino && one.dev === other.dev;
}

async function writeDurably(file: string, text: string, mode: number): Promise<void> {
  await using handle = await open(file, 'wx', mode);
  await handle.writeFile(text);
  await handle.sync();
}

function unwritable(file: string, error: unknown): CommandError {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'EEXIST')
    return new CommandError(
      'file_exists',
      `${file} already exists and was not changed. Name another file, or add --force to replace it.`,
      EXIT.refused,
    );
  return new CommandError(
    'file_unwritable',
    `${file} can't be written (${code ?? String(error)}). Name a file in an existing, writable folder.`,
    EXIT.unreachable,
  );
}

/** Bytes of the key of a repository (AES-256). */
const KEY_BYTES = 32;
const KEY_TEXT = /^[0-9a-f]{64}$/i;

/**
 * Makes a key file that only its owner may read. Rejects with `file_exists`: with a key that is lost goes every backup
 * made with it.
 */
export async function createKeyFile(file: string): Promise<void> {
  await writeKeyFiles([{ file, text: `${randomBytes(KEY_BYTES).toString('hex')}\n`, mode: SECRET_MODE }], false);
}

/**
 * The key in a file: 64 hex digits, and a line end or none. Rejects with `key_unreadable`, which never shows what the
 * file holds.
 */
export async function readKeyFile(file: string): Promise<Uint8Array> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new CommandError(
      'key_unreadable',
      `The key file ${file} can't be read (${(error as NodeJS.ErrnoException).code ?? String(error)}). Make one with \`skua backup key ${file}\`, or name the one that the repository was created with.`,
      EXIT.unreachable,
    );
  }
  if (!KEY_TEXT.test(text.trim()))
    throw new CommandError(
      'key_unreadable',
      `${file} is not a key file: a key file holds 64 hex digits. Make one with \`skua backup key FILE\`.`,
      EXIT.refused,
    );
  return new Uint8Array(Buffer.from(text.trim(), 'hex'));
}
