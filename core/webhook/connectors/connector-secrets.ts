import { SkuaError } from '../../base/errors.ts';
import type { SealedSecrets } from '../../security/api.ts';
import type { Settings } from '../api.ts';
import { isSecretName } from '../format/settings-shape.ts';

/** The secrets among the settings of a connector: sealed where they are stored, masked where they are shown. */

/** Shown in place of a secret; given back, it keeps the stored one. */
const MASK = '********';

/** For people. */
export function maskSecrets(settings: Settings): Settings {
  return mapSecrets(settings, () => MASK);
}

/** For the connector itself. Errors: `secret_refused`. */
export function openSecrets(connectorId: string, stored: Settings, secrets: SealedSecrets): Settings {
  return mapSecrets(stored, (name, sealed) => opened(connectorId, name, sealed, secrets));
}

/** For the stream; `settings` in the clear. Errors: `secret_refused`. */
export function sealSecrets(connectorId: string, settings: Settings, secrets: SealedSecrets): Settings {
  return mapSecrets(settings, (name, secret) => secrets.seal(secret, placeOf(connectorId, name)));
}

/**
 * What was asked for, with stored secrets in place of masks. A mask where nothing is stored is an error of the caller.
 * Errors: `invalid_connector`, `secret_refused`.
 */
export function unmaskSecrets(
  connectorId: string,
  given: Settings,
  stored: Settings | null,
  secrets: SealedSecrets,
): Settings {
  return mapSecrets(given, (name, secret) => {
    if (secret !== MASK) return secret;
    const sealed = stored?.get(name);
    if (sealed !== undefined) return opened(connectorId, name, sealed, secrets);
    throw new SkuaError(
      'invalid_connector',
      `${name} is masked, but no secret is stored under this name. Give the secret itself.`,
      {
        violations: [
          {
            field: name,
            description: `'${MASK}' keeps a stored secret, and there is none under this name. Give the secret itself.`,
          },
        ],
      },
    );
  });
}

function opened(connectorId: string, name: string, sealed: string, secrets: SealedSecrets): string {
  try {
    return secrets.open(sealed, placeOf(connectorId, name));
  } catch (error) {
    if (error instanceof SkuaError && error.code === 'secret_refused')
      throw new SkuaError('secret_refused', `${name} of ${connectorId}: ${error.message}`, {
        ...error.data,
        setting: name,
      });
    throw error;
  }
}

function placeOf(connectorId: string, name: string): readonly string[] {
  return [connectorId, name];
}

function mapSecrets(settings: Settings, change: (name: string, value: string) => string): Settings {
  return new Map([...settings].map(([name, value]) => [name, isSecretName(name) ? change(name, value) : value]));
}
