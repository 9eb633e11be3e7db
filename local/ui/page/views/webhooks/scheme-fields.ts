/** How senders sign, for people who choose one of them; the node's own table decides. */

export interface Scheme {
  readonly name: string;
  readonly label: string;
  /** The header with the signature; null where the settings name it. */
  readonly header: string | null;
  readonly hasTime: boolean;
  readonly about: string;
}

export const GENERIC = 'Generic';

export const SCHEMES: readonly Scheme[] = [
  {
    name: 'GitHub',
    label: 'GitHub',
    header: 'X-Hub-Signature-256',
    hasTime: false,
    about:
      'The HMAC-SHA256 of the body in hex, after sha256=. On GitHub: Settings, Webhooks; choose application/json as the content type.',
  },
  {
    name: 'Shopify',
    label: 'Shopify',
    header: 'X-Shopify-Hmac-Sha256',
    hasTime: false,
    about: 'The HMAC-SHA256 of the body in Base64.',
  },
  {
    name: 'Slack',
    label: 'Slack',
    header: 'X-Slack-Signature',
    hasTime: true,
    about: 'v0= and the hex HMAC-SHA256 over v0, the time of X-Slack-Request-Timestamp and the body.',
  },
  {
    name: 'Stripe',
    label: 'Stripe',
    header: 'Stripe-Signature',
    hasTime: true,
    about:
      't=…,v1=… with the hex HMAC-SHA256 over the time and the body. The secret starts with whsec_; enter it as is.',
  },
  {
    name: 'StandardWebhooks',
    label: 'Standard Webhooks',
    header: 'webhook-signature',
    hasTime: true,
    about:
      'v1, and the Base64 HMAC-SHA256 over webhook-id, webhook-timestamp and the body; the three headers may begin with svix- instead. The secret is whsec_ followed by Base64.',
  },
  {
    name: GENERIC,
    label: 'Other: HMAC of the body',
    header: null,
    hasTime: false,
    about: 'For senders that put the HMAC of just the body in a header: name the header and the encoding.',
  },
  {
    name: 'ProviderA',
    label: 'ProviderA',
    header: 'X-ProviderA-Signature-256',
    hasTime: false,
    about: 'Like GitHub, with this header.',
  },
  {
    name: 'ProviderB',
    label: 'ProviderB',
    header: 'X-ProviderB-Hmac-Sha256',
    hasTime: false,
    about: 'Like Shopify, with this header.',
  },
  {
    name: 'ProviderC',
    label: 'ProviderC',
    header: 'X-ProviderC-Signature',
    hasTime: true,
    about: 'Like Slack, with these headers.',
  },
  {
    name: 'ProviderD',
    label: 'ProviderD',
    header: 'ProviderD-Signature',
    hasTime: true,
    about: 'Like Stripe, with this header.',
  },
];

/** In lists and beside other names. */
export function schemeName(name: string): string {
  return schemeOf(name)?.label.split(':')[0] ?? name;
}

export function schemeOf(name: string): Scheme | null {
  return SCHEMES.find((scheme) => scheme.name.toLowerCase() === name.toLowerCase()) ?? null;
}
