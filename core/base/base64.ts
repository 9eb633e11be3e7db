/** Base64 (RFC 4648 section 4), with padding. Both directions go through a text of one character a byte. */

/** Bytes that become text at once, as arguments of one call; a multiple of three, so that no padding stands between. */
const BYTES_AT_ONCE = 24_576;

export function encodeBase64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += BYTES_AT_ONCE)
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + BYTES_AT_ONCE)));
  return text;
}

/** The bytes of the text, or null when it is no Base64. */
export function decodeBase64(text: string): Uint8Array | null {
  try {
    const characters = atob(text);
    const bytes = new Uint8Array(characters.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
    return bytes;
  } catch {
    return null;
  }
}

/** Base64 for URLs (RFC 4648 section 5), without padding. */

export function encodeBase64Url(bytes: Uint8Array): string {
  return encodeBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/**
 * The bytes of the text, or null when it is none. Every value has one text only: what would be written differently is
 * none.
 */
export function decodeBase64Url(text: string): Uint8Array | null {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return null;
  const bytes = decodeBase64(text.replaceAll('-', '+').replaceAll('_', '/'));
  return bytes !== null && encodeBase64Url(bytes) === text ? bytes : null;
}
