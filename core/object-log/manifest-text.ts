import { SkuaError } from '../errors.ts';
import type { Digests } from '../ports/digests.ts';
import { decodeText, encodeText } from '../text.ts';
import type { ObjectManifest } from './manifest.ts';

/** A manifest is text: the SHA-256 of everything behind the first line, in hex, and the manifest as JSON. */

const DIGEST_CHARACTERS = 64;
/** Names of index tables among the files of a manifest. */
export const TABLE_NAME = /^index\/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function encodeManifest(manifest: ObjectManifest, digests: Digests): Uint8Array {
  const body = `${JSON.stringify(manifest)}\n`;
  return encodeText(`${digestOf(encodeText(body), digests)}\n${body}`);
}

/** Throws `manifest_invalid`. `number` is the one in the key. */
export function decodeManifest(key: string, number: number, bytes: Uint8Array, digests: Digests): ObjectManifest {
  const fail = (what: string) => new SkuaError('manifest_invalid', `The manifest ${key} ${what}. Manifests are never changed, so something else wrote it: restore it from a version or a backup of the bucket.`, { key });
  const body = bytes.subarray(DIGEST_CHARACTERS + 1);
  if (body.length === 0 || bytes[DIGEST_CHARACTERS] !== 10) throw fail('is cut short');
  if (decodeText(bytes.subarray(0, DIGEST_CHARACTERS)) !== digestOf(body, digests)) throw fail('has a digest that does not fit its text');
  const manifest = JSON.parse(decodeText(body)) as ObjectManifest;
  if (manifest.format !== 1) throw fail(`is of format ${String(manifest.format)}, which is not known: use a newer version`);
  const wrong = firstWrong(manifest, number);
  if (wrong !== null) throw fail(`has no sound ${wrong}`);
  return manifest;
}

/** The digest vouches for the text, so this finds what a defect of a writer left. Null when all is well. */
function firstWrong(m: ObjectManifest, number: number): string | null {
  if (m.number !== number) return 'number';
  for (const name of ['chunkSizeBytes', 'boundary'] as const) if (!Number.isSafeInteger(m[name]) || m[name] < 1) return name;
  if (!Number.isSafeInteger(m.logEnd) || m.logEnd < 0) return 'logEnd';
  // Instances search tables by range, so one that stood in the manifest itself would be overlooked.
  for (const { name, key } of m.files) if (key === null && TABLE_NAME.test(name)) return `object for the index table ${name}`;
  let nextChunk = 0;
  for (const chunk of m.chunks) {
    if (chunk.startNumber !== nextChunk || chunk.endNumber < chunk.startNumber) return `place for the chunk ${chunk.name}`;
    nextChunk = chunk.endNumber + 1;
  }
  if (m.ongoing === null) return m.logEnd > nextChunk * m.chunkSizeBytes ? 'file for the end of the log' : null;
  let at = m.ongoing.number * m.chunkSizeBytes;
  if (m.ongoing.number !== nextChunk) return `place for the chunk ${m.ongoing.name}`;
  for (const segment of m.ongoing.segments) {
    if (segment.from !== at || segment.to <= segment.from) return `order of segments in ${m.ongoing.name}`;
    at = segment.to;
  }
  return at === m.logEnd ? null : 'logEnd';
}

function digestOf(body: Uint8Array, digests: Digests): string {
  const digest = digests.sha256();
  digest.update(body);
  let text = '';
  for (const byte of digest.finish()) text += byte.toString(16).padStart(2, '0');
  return text;
}
