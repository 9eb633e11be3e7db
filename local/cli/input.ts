import { open } from 'node:fs/promises';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';

/** Longest payload that is read; a node takes no more by default than a thirtieth of it. */
export const PAYLOAD_BYTES_MAX = 30_000_000;

/** The whole of a file, which may be a pipe. Errors: `file_unreadable`, `file_too_large`. */
export async function readInput(file: string, bytesMax: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    await using handle = await open(file);
    for await (const part of handle.createReadStream({ end: bytesMax, autoClose: false })) {
      parts.push(part as Uint8Array);
      length += (part as Uint8Array).length;
    }
  } catch (error) {
    throw new CommandError(
      'file_unreadable',
      `${file} can't be read (${(error as NodeJS.ErrnoException).code ?? String(error)}). Name an existing file that can be read.`,
      EXIT.unreachable,
    );
  }
  if (length > bytesMax)
    throw new CommandError('file_too_large', `${file} is longer than ${bytesMax} bytes.`, EXIT.failed);
  return Buffer.concat(parts);
}

/** The text of bytes in UTF-8, as they stand; null when they are none. */
export function utf8Text(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Values by name from `name=value`, in order; those of one name are joined with a comma, as the node joins them. */
export function namedValues(
  option: string,
  given: readonly string[],
  nameOf: (name: string) => string = (name) => name,
): Map<string, string> {
  const values = new Map<string, string>();
  for (const text of given) {
    const at = text.indexOf('=');
    if (at < 1) throw new UsageError(`--${option} must be name=value, not '${text}'.`);
    const name = nameOf(text.slice(0, at));
    const before = values.get(name);
    values.set(name, before === undefined ? text.slice(at + 1) : `${before},${text.slice(at + 1)}`);
  }
  return values;
}
