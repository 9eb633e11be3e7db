import { readFile } from 'node:fs/promises';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import type { Values } from '../../infra/runtime/config/options.ts';

/**
 * The token under which secrets are sealed; '' for none. The token is the file's content without the line's end; an
 * empty one is none. Rejects with a CommandError when it can't be read.
 */
export async function dataProtectionToken(values: Values): Promise<string> {
  const file = values['Connectors:DataProtection:TokenFile'];
  if (file === null) return values['Connectors:DataProtection:Token'] ?? '';
  try {
    return (await readFile(file, 'utf8')).replace(/\r?\n$/, '');
  } catch (error) {
    throw new CommandError(
      'token_unreadable',
      `The data-protection token could not be read from ${file} (${(error as NodeJS.ErrnoException).code}). Check the path and the file permissions.`,
      EXIT.failed,
    );
  }
}
