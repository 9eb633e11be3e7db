import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { CommandError } from '../cli/failure.ts';
import { EXIT } from '../cli/io.ts';
import { SECRET_MODE, writeKeyFiles } from '../license/key-files.ts';

/** Bytes of the key of a repository (AES-256). */
const KEY_BYTES = 32;
const KEY_TEXT = /^[0-9a-f]{64}$/i;

/** Makes a key file that only its owner may read. Rejects with `file_exists`: who loses a key loses every backup made with it. */
export async function createKeyFile(file: string): Promise<void> {
  await writeKeyFiles([{ file, text: `${randomBytes(KEY_BYTES).toString('hex')}\n`, mode: SECRET_MODE }], false);
}

/** The key in a file: 64 hex digits, and a line end or none. Rejects with `key_unreadable`, which never shows what the file holds. */
export async function readKeyFile(file: string): Promise<Uint8Array> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new CommandError('key_unreadable', `The key file ${file} can't be read (${(error as NodeJS.ErrnoException).code ?? String(error)}). Make one with \`skua backup key ${file}\`, or name the one that the repository was made with.`, EXIT.unreachable);
  }
  if (!KEY_TEXT.test(text.trim())) throw new CommandError('key_unreadable', `${file} is no key file: one holds 64 hex digits. Make one with \`skua backup key FILE\`.`, EXIT.refused);
  return new Uint8Array(Buffer.from(text.trim(), 'hex'));
}
