import { equalBytes } from '../bytes.ts';
import type { Digests } from '../ports/digests.ts';
import { decodeText, encodeText } from '../text.ts';
import { damaged } from './damaged.ts';
import { toHex } from './hex.ts';
import type { Sealer } from './sealing.ts';

/** Stands before what is sealed; a JSON text can't begin so. */
const SEALED_MAGIC = encodeText('SkuaSeal');
const LINE_END = 10;
const CHECKSUM_BYTES = 64;

export interface TextCodec {
  readonly place: string;
  readonly digests: Digests;
  /** Null where nothing is encrypted. */
  readonly sealer: Sealer | null;
}

/**
 * A small object of a repository: one line of JSON, and a line with its SHA-256 in hex; in an encrypted repository that
 * text, sealed for its key, so that no object can take the place of another.
 */
export function encodeObject(codec: TextCodec, key: string, value: unknown): Uint8Array {
  const json = encodeText(JSON.stringify(value));
  const text = new Uint8Array(json.length + CHECKSUM_BYTES + 2);
  text.set(json);
  text[json.length] = LINE_END;
  text.set(checksum(codec.digests, key, json), json.length + 1);
  text[text.length - 1] = LINE_END;
  if (codec.sealer === null) return text;
  const sealed = codec.sealer.seal(text, encodeText(key));
  const out = new Uint8Array(SEALED_MAGIC.length + sealed.length);
  out.set(SEALED_MAGIC);
  out.set(sealed, SEALED_MAGIC.length);
  return out;
}

/** The value that was encoded. Throws `repository_damaged`. */
export function decodeObject(codec: TextCodec, key: string, bytes: Uint8Array): unknown {
  const text = codec.sealer === null ? bytes : openSealed(codec, codec.sealer, key, bytes);
  const end = text.length - CHECKSUM_BYTES - 2;
  if (end < 1 || text[end] !== LINE_END || text[text.length - 1] !== LINE_END) throw damaged(codec.place, key, 'is cut short or changed');
  const json = text.subarray(0, end);
  if (!equalBytes(text, end + 1, checksum(codec.digests, key, json), 0, CHECKSUM_BYTES)) throw damaged(codec.place, key, 'does not fit its checksum');
  try {
    return JSON.parse(decodeText(json));
  } catch (error) {
    throw damaged(codec.place, key, 'is no JSON', error);
  }
}

function openSealed(codec: TextCodec, sealer: Sealer, key: string, bytes: Uint8Array): Uint8Array {
  const isSealed = bytes.length > SEALED_MAGIC.length && equalBytes(bytes, 0, SEALED_MAGIC, 0, SEALED_MAGIC.length);
  const text = isSealed ? sealer.open(bytes.subarray(SEALED_MAGIC.length), encodeText(key)) : null;
  if (text === null) throw damaged(codec.place, key, 'was not sealed with the key of the repository, or was changed');
  return text;
}

/** The key is part of it, so that an object that stands under another's key is found out. */
function checksum(digests: Digests, key: string, json: Uint8Array): Uint8Array {
  const digest = digests.sha256();
  digest.update(encodeText(`${key}\n`));
  digest.update(json);
  return encodeText(toHex(digest.finish()));
}
