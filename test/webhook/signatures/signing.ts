import type { SignatureSettings } from '../../../core/webhook/api.ts';

/** What tests of signatures share: a time, and for each scheme settings and a secret that fit. */

export const NOW_S = 1_700_000_000;
export const NOW_MS = NOW_S * 1000;
export const ID = 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W';

export function settingsFor(scheme: string): SignatureSettings {
  const isGeneric = scheme.toLowerCase() === 'generic';
  return {
    scheme,
    timestampToleranceMs: 300_000,
    header: isGeneric ? 'x-signature' : null,
    prefix: isGeneric ? 'mac ' : null,
    encoding: isGeneric ? 'base64' : null,
    hash: isGeneric ? 'sha512' : null,
  };
}

export function secretFor(scheme: string): string {
  return scheme === 'StandardWebhooks' ? `whsec_${btoa('a key of twenty-five bytes')}` : 'it is a secret to everybody';
}

export function bodyOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
