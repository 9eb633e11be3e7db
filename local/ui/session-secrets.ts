import { randomBytes } from 'node:crypto';
import { access } from 'node:fs/promises';
import * as path from 'node:path';
import type { SessionSecrets } from '../../core/security/api.ts';
import { createKeyFile, readKeyFile } from '../cli/key-files.ts';
import { dataProtectionToken } from '../config/data-protection.ts';
import type { Values } from '../../infra/runtime/config/options.ts';

/** In the data directory, where no option says another place. */
const KEY_FILE_NAME = 'session.key';
const KEY_BYTES = 32;

/**
 * Of what the keys of sessions are made: the data-protection token, else the secret of the cluster, which all members
 * have; else a key that only this node has, in a file that is made when the first session begins. Without a directory
 * it is in memory alone, and sessions end with the process. Nothing is read before a user logs in, or a request comes
 * with what may be a session; what failed is tried again.
 */
export function sessionSecrets(values: Values, directory: string | null): SessionSecrets {
  const file = values.SessionKeyFile ?? (directory === null ? null : path.join(directory, KEY_FILE_NAME));
  const previous = values['Connectors:DataProtection:PreviousTokens'];
  let loading: Promise<readonly string[]> | null = null;
  return async (isBeginning) => {
    // A request that only comes with a session makes no file.
    if (loading === null && !isBeginning && (await shared(values)).length === 0 && !(await isThere(file)))
      return previous;
    return (loading ??= load().catch((error: unknown) => {
      loading = null;
      throw error;
    }));
  };

  async function load(): Promise<readonly string[]> {
    const first = await shared(values);
    return [...(first.length > 0 ? first : [await ownKey(file)]), ...previous];
  }
}

async function shared(values: Values): Promise<string[]> {
  return [await dataProtectionToken(values), values.ClusterSecret ?? ''].filter((each) => each !== '');
}

async function isThere(file: string | null): Promise<boolean> {
  return (
    file !== null &&
    (await access(file).then(
      () => true,
      () => false,
    ))
  );
}

async function ownKey(file: string | null): Promise<string> {
  if (file === null) return randomBytes(KEY_BYTES).toString('hex');
  await createKeyFile(file).catch((error: unknown) => {
    if ((error as { readonly code?: unknown }).code !== 'file_exists') throw error;
  });
  return Buffer.from(await readKeyFile(file)).toString('hex');
}
