import { encodeText } from '../../base/text.ts';

/**
 * The question of a sender whether this end knows the secret: `{"type": "url_verification", "challenge": "…"}`. The
 * sender wants the text back before it sends anything else. Answered only where the signature is verified, so that no
 * other caller has a text of its own sent from here.
 */

const TYPE = 'url_verification';
/** Bytes in UTF-8; what is longer is a call like any other. */
const CHALLENGE_BYTES_MAX = 1_024;

/** The text that the sender wants back; null where it asks nothing. `bodyText` is known to be JSON. */
export function challengeOf(bodyText: string): string | null {
  // Most calls need not be parsed for this.
  if (!bodyText.includes(TYPE)) return null;
  const value: unknown = JSON.parse(bodyText);
  if (typeof value !== 'object' || value === null) return null;
  const { type, challenge } = value as { readonly type?: unknown; readonly challenge?: unknown };
  if (type !== TYPE || typeof challenge !== 'string' || challenge === '' || !challenge.isWellFormed()) return null;
  return challenge.length <= CHALLENGE_BYTES_MAX && encodeText(challenge).length <= CHALLENGE_BYTES_MAX
    ? challenge
    : null;
}
