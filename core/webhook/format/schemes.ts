import type { HmacHash } from '../../ports/keys.ts';
import { decodeBase64, encodeBase64 } from '../../base/base64.ts';
import { encodeText } from '../../base/text.ts';
import { SECRETS_MAX } from '../api.ts';
import type { SignatureSettings, Violation } from '../api.ts';

/** How senders sign. Verifying, signing and the check of settings all go by this one table. */
export interface SignatureScheme {
  readonly name: string;
  /** The header with the signature, as its sender spells it. */
  readonly header: string;
  /** What stands in front of a signature. */
  readonly prefix: string;
  /**
   * What separates the items of the header, of which any number may be signatures; null where it is one signature and
   * nothing else.
   */
  readonly separator: string | null;
  readonly encoding: SignatureEncoding;
  readonly hash: HmacHash;
  /** Where the time of signing stands, in Unix seconds; null where nothing of it is signed. */
  readonly timestamp: { readonly header: string } | { readonly itemPrefix: string } | null;
  /** A header whose value is signed as the id of the delivery. */
  readonly signedIdHeader: string | null;
  /** The header by which the sender names a delivery, the same one again when it repeats it; signed or not. */
  readonly deliveryHeader: string | null;
  /**
   * The names, lower-cased, that the headers have with senders that are older than the scheme: they count where the
   * signature stands under them, and under its own name nothing.
   */
  readonly formerNames: HeaderNames | null;
  /** Its sender sends a challenge by a call of its own (challenge.ts), and nothing else until that is answered. */
  readonly hasChallenge: boolean;
  /** The text that is signed in front of the body. */
  readonly signedHead: (timestamp: string, id: string) => string;
  /** The key that a secret stands for; null when the secret is of another form. */
  readonly keyOf: (secret: string) => Uint8Array | null;
  /** What `keyOf` takes, for people. */
  readonly secretForm: string;
}

type SignatureEncoding = 'hex' | 'base64';

/** Of the headers that a scheme looks at. */
export interface HeaderNames {
  readonly signature: string;
  readonly timestamp: string;
  readonly id: string;
}

/** The scheme that `signature:header`, `:prefix`, `:encoding` and `:hash` describe. */
export const GENERIC = 'Generic';

/** Base64 of what a secret of Standard Webhooks holds stands behind this. */
const STANDARD_SECRET_PREFIX = 'whsec_';

const plain = {
  prefix: '',
  separator: null,
  encoding: 'hex',
  hash: 'sha256',
  timestamp: null,
  signedIdHeader: null,
  deliveryHeader: null,
  formerNames: null,
  hasChallenge: false,
  signedHead: () => '',
  keyOf: (secret: string) => (secret === '' ? null : encodeText(secret)),
  secretForm: 'a non-empty string',
} as const;

/** The hash of the body in hex behind `sha256=`. */
const bodyHex = { ...plain, prefix: 'sha256=' } as const;
/** The hash of the body in Base64. */
const bodyBase64 = { ...plain, encoding: 'base64' } as const;
/** `v0=…`, over a time that stands in a header of its own. */
const versioned = {
  ...plain,
  prefix: 'v0=',
  hasChallenge: true,
  signedHead: (timestamp: string) => `v0:${timestamp}:`,
} as const;
/** `t=…,v1=…,v1=…`; items of other versions don't count. */
const pairs = {
  ...plain,
  prefix: 'v1=',
  separator: ',',
  timestamp: { itemPrefix: 't=' },
  signedHead: (timestamp: string) => `${timestamp}.`,
} as const;

const SCHEMES: readonly SignatureScheme[] = [
  { ...bodyHex, name: 'ProviderA', header: 'X-ProviderA-Signature-256' },
  { ...bodyHex, name: 'GitHub', header: 'X-Hub-Signature-256', deliveryHeader: 'X-GitHub-Delivery' },
  { ...bodyBase64, name: 'ProviderB', header: 'X-ProviderB-Hmac-Sha256' },
  { ...bodyBase64, name: 'Shopify', header: 'X-Shopify-Hmac-Sha256', deliveryHeader: 'X-Shopify-Webhook-Id' },
  {
    ...versioned,
    name: 'ProviderC',
    header: 'X-ProviderC-Signature',
    timestamp: { header: 'X-ProviderC-Request-Timestamp' },
  },
  { ...versioned, name: 'Slack', header: 'X-Slack-Signature', timestamp: { header: 'X-Slack-Request-Timestamp' } },
  { ...pairs, name: 'ProviderD', header: 'ProviderD-Signature' },
  { ...pairs, name: 'Stripe', header: 'Stripe-Signature' },
  {
    ...plain,
    name: 'StandardWebhooks',
    header: 'webhook-signature',
    prefix: 'v1,',
    separator: ' ',
    encoding: 'base64',
    timestamp: { header: 'webhook-timestamp' },
    signedIdHeader: 'webhook-id',
    deliveryHeader: 'webhook-id',
    formerNames: { signature: 'svix-signature', timestamp: 'svix-timestamp', id: 'svix-id' },
    signedHead: (timestamp, id) => `${id}.${timestamp}.`,
    keyOf: standardKey,
    secretForm: `${STANDARD_SECRET_PREFIX} followed by Base64`,
  },
];

export const SCHEME_NAMES: readonly string[] = [...SCHEMES.map(({ name }) => name), GENERIC];

const byName = new Map(SCHEMES.map((scheme) => [scheme.name.toLowerCase(), scheme]));

/** Whether the name is that of the scheme described by settings. */
export function isGeneric(name: string): boolean {
  return name.toLowerCase() === GENERIC.toLowerCase();
}

/** The scheme of this name, which compares without regard to case; null when there is none. Not for `Generic`. */
export function namedScheme(name: string): SignatureScheme | null {
  return byName.get(name.toLowerCase()) ?? null;
}

/** The scheme that valid settings (`checkSignatureSettings`) name or describe; null for others. */
export function schemeOf(settings: SignatureSettings): SignatureScheme | null {
  if (!isGeneric(settings.scheme)) return namedScheme(settings.scheme);
  const encoding = encodingOf(settings.encoding);
  const hash = hashOf(settings.hash);
  if (settings.header === null || encoding === null || hash === null) return null;
  return { ...plain, name: GENERIC, header: settings.header, prefix: settings.prefix ?? '', encoding, hash };
}

const ENCODINGS: readonly SignatureEncoding[] = ['hex', 'base64'];
const HASHES: readonly HmacHash[] = ['sha256', 'sha1', 'sha512'];

/** Hex unless another one is named; null for an unknown one. */
function encodingOf(name: string | null): SignatureEncoding | null {
  return name === null ? 'hex' : (ENCODINGS.find((each) => each === name.toLowerCase()) ?? null);
}

/** SHA-256 unless another one is named; null for an unknown one. */
function hashOf(name: string | null): HmacHash | null {
  return name === null ? 'sha256' : (HASHES.find((each) => each === name.toLowerCase()) ?? null);
}

/** Only the canonical Base64: with stray bits several texts would be one secret. */
function standardKey(secret: string): Uint8Array | null {
  if (!secret.startsWith(STANDARD_SECRET_PREFIX)) return null;
  const text = secret.slice(STANDARD_SECRET_PREFIX.length);
  const key = decodeBase64(text);
  return key !== null && key.length > 0 && encodeBase64(key) === text ? key : null;
}

/** Characters of `signature:prefix`. */
const PREFIX_LENGTH_MAX = 64;
/** Characters of `signature:header`. */
const NAME_LENGTH_MAX = 100;
/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** A value of a header begins with no white space, and ends with a signature. */
const PREFIX = /^[\x21-\x7E][\x20-\x7E]*$/;

/** Checks what the schemes know of: unknown scheme, settings that it lacks or can't use, a secret of the wrong form. */
type CheckSignature = (signature: SignatureSettings, secrets: readonly string[]) => readonly Violation[];

/**
 * What keeps the settings from being used; nothing when they can be. The first secret is `signature:secret`, the further
 * ones are `signature:secrets:0` and on. No text holds a secret.
 */
export const checkSignatureSettings: CheckSignature = (settings, secrets) => {
  const violations = isGeneric(settings.scheme) ? checkGeneric(settings) : checkNamed(settings);
  if (!(settings.timestampToleranceMs >= 0 && Number.isFinite(settings.timestampToleranceMs)))
    violations.push({
      field: 'signature:timestampTolerance',
      description: 'Give a time of 00:00:00 or more, as hh:mm:ss.',
    });
  violations.push(...checkSecrets(settings, secrets));
  return violations;
};

function checkNamed(settings: SignatureSettings): Violation[] {
  if (namedScheme(settings.scheme) === null)
    return [
      { field: 'signature:scheme', description: `There is no such scheme. Use one of ${SCHEME_NAMES.join(', ')}.` },
    ];
  const violations: Violation[] = [];
  for (const name of ['header', 'prefix', 'encoding', 'hash'] as const) {
    if (settings[name] !== null)
      violations.push({
        field: `signature:${name}`,
        description: `Belongs to the scheme ${GENERIC}: leave it out, since ${namedScheme(settings.scheme)!.name} fixes it.`,
      });
  }
  return violations;
}

function checkGeneric({ header, prefix, encoding, hash }: SignatureSettings): Violation[] {
  const violations: Violation[] = [];
  if (header === null)
    violations.push({
      field: 'signature:header',
      description: `The scheme ${GENERIC} needs it: name the header that holds the signature.`,
    });
  else if (header.length > NAME_LENGTH_MAX || !TOKEN.test(header))
    violations.push({
      field: 'signature:header',
      description: `Not a name of a header. Use letters, digits and hyphens, at most ${NAME_LENGTH_MAX} characters.`,
    });
  if (prefix !== null && (prefix.length > PREFIX_LENGTH_MAX || !PREFIX.test(prefix)))
    violations.push({
      field: 'signature:prefix',
      description: `Use at most ${PREFIX_LENGTH_MAX} printable ASCII characters, not starting with a space.`,
    });
  if (encodingOf(encoding) === null)
    violations.push({ field: 'signature:encoding', description: `Use one of ${ENCODINGS.join(', ')}.` });
  if (hashOf(hash) === null)
    violations.push({ field: 'signature:hash', description: `Use one of ${HASHES.join(', ')}.` });
  return violations;
}

function checkSecrets(settings: SignatureSettings, secrets: readonly string[]): Violation[] {
  if (secrets.length === 0)
    return [{ field: 'signature:secret', description: 'A scheme needs the secret that is shared with the sender.' }];
  if (secrets.length > SECRETS_MAX)
    return [
      {
        field: 'signature:secrets',
        description: `At most ${SECRETS_MAX} secrets are allowed. Remove those that the sender no longer uses.`,
      },
    ];
  // What a secret has to look like is known even when other settings of the scheme are wrong.
  const scheme =
    schemeOf(settings) ??
    (isGeneric(settings.scheme) ? schemeOf({ ...settings, header: 'x', encoding: null, hash: null }) : null);
  if (scheme === null) return [];
  return secrets.flatMap((secret, index) =>
    secret.isWellFormed() && scheme.keyOf(secret) !== null
      ? []
      : [
          {
            field: index === 0 ? 'signature:secret' : `signature:secrets:${index - 1}`,
            description: `A secret of ${scheme.name} is ${scheme.secretForm}.`,
          },
        ],
  );
}
