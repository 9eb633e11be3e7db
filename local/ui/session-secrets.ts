import { randomBytes } from 'node:crypto';
import * as path from 'node:path';
import { SealedSecrets } from '../../core/security/sealed-secrets.ts';
import { nodeKeys } from '../../infra/keys.ts';
import { createKeyFile, readKeyFile } from '../cli/key-files.ts';
import { dataProtectionToken } from '../config/data-protection.ts';
import type { Values } from '../config/options.ts';

/** In the data directory, where no option says another place. */
const KEY_FILE_NAME = 'session.key';
const KEY_BYTES = 32;

/**
 * Under what the keys of sessions are sealed: the data-protection token, else the secret of the cluster, which all members have; else a key that only this
 * node has, in a file that is made when it is needed first. Without a directory it is in memory alone, and sessions end with the process. Nothing is read before
 * somebody logs in, or comes with a session; what failed is tried again.
 */
export function sessionSecrets(values: Values, directory: string | null): () => Promise<SealedSecrets> {
  let loading: Promise<SealedSecrets> | null = null;
  return () => (loading ??= load(values, directory).catch((error: unknown) => {
    loading = null;
    throw error;
  }));
}

async function load(values: Values, directory: string | null): Promise<SealedSecrets> {
  const shared = [await dataProtectionToken(values), values.ClusterSecret ?? ''].filter((each) => each !== '');
  const first = shared.length > 0 ? shared : [await ownKey(values.SessionKeyFile ?? (directory === null ? null : path.join(directory, KEY_FILE_NAME)))];
  return new SealedSecrets(nodeKeys, [...first, ...values['Connectors:DataProtection:PreviousTokens']]);
}

async function ownKey(file: string | null): Promise<string> {
  if (file === null) return randomBytes(KEY_BYTES).toString('hex');
  await createKeyFile(file).catch((error: unknown) => {
    if ((error as { readonly code?: unknown }).code !== 'file_exists') throw error;
  });
  return Buffer.from(await readKeyFile(file)).toString('hex');
}
