import { SkuaError } from '../../../core/base/errors.ts';
import { ConfigError } from '../../runtime/config/option.ts';

/** Gives the text of the secret with this name or ARN. `variable` is what named it, for messages. */
export type ReadSecret = (id: string, variable: string) => Promise<string>;

const CONNECT_MS = 2_000;
const REQUEST_MS = 5_000;
const ATTEMPTS_MAX = 3;
/** What an operator has to mend, by the names of the service; what is not here may pass by itself. */
const LASTING: Readonly<Record<string, string>> = {
  ResourceNotFoundException: 'there is no such secret',
  AccessDeniedException: 'the role of the function may not read it',
  DecryptionFailure: 'its key cannot be used by the role of the function',
  InvalidRequestException: 'it is being deleted',
  InvalidParameterException: 'this is not the name of a secret',
  ValidationException: 'this is not the name of a secret',
  CredentialsProviderError: 'there are no credentials',
};

/**
 * Reads AWS Secrets Manager, whose client is loaded with the first secret. Secrets are read when a function starts, so
 * that they stand neither in its configuration nor in what describes it. Errors: a ConfigError for what lasts, else
 * `storage_unreachable`; none of them says what a secret holds.
 */
export const readSecret: ReadSecret = async (id, variable) => {
  const { GetSecretValueCommand, SecretsManagerClient } = await import('@aws-sdk/client-secrets-manager');
  const client = new SecretsManagerClient({
    maxAttempts: ATTEMPTS_MAX,
    requestHandler: { connectionTimeout: CONNECT_MS, requestTimeout: REQUEST_MS },
  });
  try {
    const { SecretString: text } = await client.send(new GetSecretValueCommand({ SecretId: id }));
    if (text === undefined || text === '')
      throw new ConfigError([`${variable} names a secret without a text value: store one.`]);
    return text;
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const name = error instanceof Error ? error.name : 'unknown';
    const lasting = LASTING[name];
    if (lasting !== undefined) throw new ConfigError([`${variable} names the secret ${id}, and ${lasting} (${name}).`]);
    throw new SkuaError(
      'storage_unreachable',
      `The secret that ${variable} names could not be read (${name}). Try again; if this persists, check that the function can reach the secret store.`,
      { variable },
      error,
    );
  } finally {
    client.destroy();
  }
};
