import { SECRETS_MAX } from './active.ts';
import type { CheckSignature, SignatureSettings, Violation } from './active.ts';
import { ENCODINGS, encodingOf, GENERIC, HASHES, hashOf, isGeneric, namedScheme, SCHEME_NAMES, schemeOf } from './signature-schemes.ts';

/** Characters of `signature:prefix`. */
export const PREFIX_LENGTH_MAX = 64;
/** Characters of `signature:header`. */
const NAME_LENGTH_MAX = 100;
/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** A value of a header begins with no white space, and ends with a signature. */
const PREFIX = /^[\x21-\x7E][\x20-\x7E]*$/;

/**
 * What keeps the settings from being used; nothing when they can be. The first secret is `signature:secret`, the further
 * ones are `signature:secrets:0` and on. No text holds a secret.
 */
export const checkSignatureSettings: CheckSignature = (settings, secrets) => {
  const violations = isGeneric(settings.scheme) ? checkGeneric(settings) : checkNamed(settings);
  if (!(settings.timestampToleranceMs >= 0 && Number.isFinite(settings.timestampToleranceMs))) violations.push({ field: 'signature:timestampTolerance', description: 'Give a time of 00:00:00 or more, as hh:mm:ss.' });
  violations.push(...checkSecrets(settings, secrets));
  return violations;
};

function checkNamed(settings: SignatureSettings): Violation[] {
  if (namedScheme(settings.scheme) === null) return [{ field: 'signature:scheme', description: `There is no such scheme. Use one of ${SCHEME_NAMES.join(', ')}.` }];
  const violations: Violation[] = [];
  for (const name of ['header', 'prefix', 'encoding', 'hash'] as const) {
    if (settings[name] !== null) violations.push({ field: `signature:${name}`, description: `Belongs to the scheme ${GENERIC}: leave it out, since ${namedScheme(settings.scheme)!.name} fixes it.` });
  }
  return violations;
}

function checkGeneric({ header, prefix, encoding, hash }: SignatureSettings): Violation[] {
  const violations: Violation[] = [];
  if (header === null) violations.push({ field: 'signature:header', description: `The scheme ${GENERIC} needs it: name the header that holds the signature.` });
  else if (header.length > NAME_LENGTH_MAX || !TOKEN.test(header)) violations.push({ field: 'signature:header', description: `Not a name of a header. Use letters, digits and hyphens, at most ${NAME_LENGTH_MAX} characters.` });
  if (prefix !== null && (prefix.length > PREFIX_LENGTH_MAX || !PREFIX.test(prefix))) violations.push({ field: 'signature:prefix', description: `Use at most ${PREFIX_LENGTH_MAX} printable ASCII characters, the first of which is no space.` });
  if (encodingOf(encoding) === null) violations.push({ field: 'signature:encoding', description: `Use one of ${ENCODINGS.join(', ')}.` });
  if (hashOf(hash) === null) violations.push({ field: 'signature:hash', description: `Use one of ${HASHES.join(', ')}.` });
  return violations;
}

function checkSecrets(settings: SignatureSettings, secrets: readonly string[]): Violation[] {
  if (secrets.length === 0) return [{ field: 'signature:secret', description: 'A scheme needs the secret that is shared with the sender.' }];
  if (secrets.length > SECRETS_MAX) return [{ field: 'signature:secrets', description: `At most ${SECRETS_MAX} secrets count. Remove those that the sender no longer uses.` }];
  // What a secret has to look like is known even when other settings of the scheme are wrong.
  const scheme = schemeOf(settings) ?? (isGeneric(settings.scheme) ? schemeOf({ ...settings, header: 'x', encoding: null, hash: null }) : null);
  if (scheme === null) return [];
  return secrets.flatMap((secret, index) => (secret.isWellFormed() && scheme.keyOf(secret) !== null ? []
    : [{ field: index === 0 ? 'signature:secret' : `signature:secrets:${index - 1}`, description: `A secret of ${scheme.name} is ${scheme.secretForm}.` }]));
}
