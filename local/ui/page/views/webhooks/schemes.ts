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
  { name: 'GitHub', label: 'GitHub', header: 'X-Hub-Signature-256', hasTime: false, about: 'The HMAC-SHA256 of the body in hex behind sha256=. At GitHub: Settings, Webhooks; choose application/json as content type.' },
  { name: 'Shopify', label: 'Shopify', header: 'X-Shopify-Hmac-Sha256', hasTime: false, about: 'The HMAC-SHA256 of the body in Base64.' },
  { name: 'Slack', label: 'Slack', header: 'X-Slack-Signature', hasTime: true, about: 'v0= and the hex HMAC-SHA256 over v0, the time of X-Slack-Request-Timestamp and the body.' },
  { name: 'Stripe', label: 'Stripe', header: 'Stripe-Signature', hasTime: true, about: 't=…,v1=… with the hex HMAC-SHA256 over the time and the body. The secret begins with whsec_ and is given as it is.' },
  { name: 'StandardWebhooks', label: 'Standard Webhooks', header: 'webhook-signature', hasTime: true, about: 'v1, and the Base64 HMAC-SHA256 over webhook-id, webhook-timestamp and the body; the three headers may begin with svix- instead. The secret is whsec_ with Base64 behind it.' },
  { name: GENERIC, label: 'Another one: the hash of the body', header: null, hasTime: false, about: 'For senders that send the HMAC of the body alone in a header: say which, and how it is written.' },
  { name: 'ProviderA', label: 'ProviderA', header: 'X-ProviderA-Signature-256', hasTime: false, about: 'As GitHub, with a header of this name.' },
  { name: 'ProviderB', label: 'ProviderB', header: 'X-ProviderB-Hmac-Sha256', hasTime: false, about: 'As Shopify, with a header of this name.' },
  { name: 'ProviderC', label: 'ProviderC', header: 'X-ProviderC-Signature', hasTime: true, about: 'As Slack, with headers of these names.' },
  { name: 'ProviderD', label: 'ProviderD', header: 'ProviderD-Signature', hasTime: true, about: 'As Stripe, with a header of this name.' },
];

export function schemeOf(name: string): Scheme | null {
  return SCHEMES.find((scheme) => scheme.name.toLowerCase() === name.toLowerCase()) ?? null;
}
