import { isSkuaError } from '../../base/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Keys } from '../../ports/keys.ts';
import type { Log } from '../../ports/log.ts';
import { timestampText } from '../../base/time.ts';
import { isSignedBy, readLicence } from './licence-token.ts';
import type { Feature, LicenceClaims, LicenceToken } from './licence-token.ts';

/** Whether a node may use what needs a licence. */
export interface Licence {
  /** `built-in` counts where no key is configured. */
  readonly source: 'built-in' | 'key' | 'none';
  /** Why the feature is not granted at this moment, as a sentence that says what to do; null when it is. */
  refusal(feature: Feature, nowMs: number): string | null;
  /** Milliseconds since 1970; null for a licence that does not expire. */
  readonly expiresAtMs: number | null;
}

export interface LicenceConfig {
  /** `Licensing:LicenseKey`. */
  readonly key: string | null;
  /** What `Licensing:IssuerKeyFile` holds, or why it can't be read; null when none is named. */
  readonly issuerKey: { readonly pem: string } | { readonly unreadable: string } | null;
  /** `Licensing:UseBuiltIn`. */
  readonly useBuiltIn: boolean;
}

/** Grants everything, for ever: nothing has to be bought or fetched. A constant, which no key can be mistaken for. */
export const BUILT_IN_LICENCE: Licence = { source: 'built-in', expiresAtMs: null, refusal: () => null };

/** The licence that a configuration amounts to. A key that is configured counts even where it is worth nothing. */
export function licenceOf({ key, issuerKey, useBuiltIn }: LicenceConfig, keys: Keys): Licence {
  if (key === null)
    return useBuiltIn
      ? BUILT_IN_LICENCE
      : refusing(
          'none',
          'There is no licence key, and Licensing:UseBuiltIn is false. Set Licensing:LicenseKey, or leave out Licensing:UseBuiltIn, and restart the node.',
        );
  if (issuerKey === null)
    return refusing(
      'key',
      "The licence key can't be verified: Licensing:IssuerKeyFile must name the public key of its issuer.",
    );
  if ('unreadable' in issuerKey)
    return refusing(
      'key',
      `The licence key can't be verified, since Licensing:IssuerKeyFile can't be read: ${issuerKey.unreadable}`,
    );
  try {
    const token = reasoned('The licence key in Licensing:LicenseKey is invalid.', () => readLicence(key));
    const isSigned = reasoned("The licence key can't be verified: Licensing:IssuerKeyFile is not a valid key.", () =>
      isSignedBy(token, issuerKey.pem, keys),
    );
    return isSigned
      ? granting(token)
      : refusing(
          'key',
          'The licence key was not signed by the issuer in Licensing:IssuerKeyFile, or was changed afterwards.',
        );
  } catch (error) {
    if (error instanceof Refusal) return refusing('key', error.message);
    throw error;
  }
}

class Refusal extends Error {}

function reasoned<T>(what: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw isSkuaError(error, 'licence_invalid') ? new Refusal(`${what} ${error.message}`) : error;
  }
}

function refusing(source: 'key' | 'none', reason: string): Licence {
  return { source, expiresAtMs: null, refusal: () => reason };
}

function granting({ claims }: LicenceToken): Licence {
  return {
    source: 'key',
    expiresAtMs: claims.expiresAtMs,
    refusal: (feature, nowMs) => timeRefusal(claims, nowMs) ?? featureRefusal(claims, feature),
  };
}

/** Why a key is worth nothing at this moment; null when it is worth something. */
function timeRefusal({ expiresAtMs, notBeforeMs }: LicenceClaims, nowMs: number): string | null {
  if (nowMs >= expiresAtMs)
    return `The licence key expired at ${momentText(expiresAtMs)}. Set a new one in Licensing:LicenseKey and restart the node.`;
  if (notBeforeMs !== null && nowMs < notBeforeMs)
    return `The licence key is not valid before ${momentText(notBeforeMs)}. Restart the node after that.`;
  return null;
}

function featureRefusal({ features }: LicenceClaims, feature: Feature): string | null {
  return features.includes(feature) || features.includes('ALL')
    ? null
    : `The licence key does not include ${feature}. Set another one in Licensing:LicenseKey and restart the node.`;
}

function momentText(ms: number): string {
  return timestampText(Math.floor(ms), 0);
}

interface GuardParts {
  readonly licence: Licence;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Says, whenever it is asked, why the licence does not grant a feature; null while it does. Once it does not, that
 * stays so until the process is started again, whatever the clock says then, and the log has it once.
 */
export function licenceGuard(feature: Feature, { licence, clock, log }: GuardParts): () => string | null {
  let lost: string | null = null;
  return () => {
    if (lost !== null) return lost;
    lost = licence.refusal(feature, clock.nowMs());
    if (lost !== null)
      log.warn('A feature has no licence and is off until the node is restarted.', { feature, reason: lost });
    return lost;
  };
}
