import { open, readFile } from 'node:fs/promises';
import * as path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { SkuaError } from '../../core/base/errors.ts';
import type { ObjectStore } from '../../core/ports/object-store.ts';
import type { AnchorLocation } from '../../core/integrity/api.ts';
import { type Anchor, parseAnchor } from '../../core/integrity/format/chain-layout.ts';
import { decodeText, encodeText } from '../../core/base/text.ts';
import { makeFolder } from '../fs/make-folder.ts';
import { identityOf, rootMissing, rootReplaced } from '../fs/root.ts';
import { openObjects, parseLocation } from '../objects/open-objects.ts';

const MS_PER_DAY = 86_400_000;
/** Digits, so that the names of objects sort as positions and receipts do. */
const POSITION_DIGITS = 20;
const RECEIPT_DIGITS = 10;

export interface AnchorLocationOptions {
  /** A file, an http(s) URL, or s3://bucket/prefix. */
  readonly place: string;
  /** Days for which objects can't be removed; 0 for no lock. */
  readonly lockDays: number;
  readonly s3: { readonly endpoint: string | null; readonly region: string | null };
}

/** What kind of place a text names. */
export function anchorLocationKind(location: string): 'file' | 'url' | 's3' {
  if (/^https?:\/\//i.test(location)) return 'url';
  return /^s3:/i.test(location) ? 's3' : 'file';
}

/** Throws `bad_option` for what is no place. */
export async function openAnchorLocation({ place, lockDays, s3 }: AnchorLocationOptions): Promise<AnchorLocation> {
  switch (anchorLocationKind(place)) {
    case 'url':
      return urlPlace(place);
    case 's3':
      return objectPlace(await openObjects(parseLocation(place, s3)), lockDays, () => Date.now());
    default:
      return filePlace(place);
  }
}

/**
 * A line of JSON behind those before it, durable. Nothing of the file is ever changed. Its folder is made by the first
 * anchor of a process, and never again: from then on it has to be the same one, or hold the last anchor. Else
 * `storage_unreachable`, until it is back.
 */
export function filePlace(file: string): AnchorLocation {
  const folder = path.dirname(path.resolve(file));
  let root: string | null = null;
  let last = '';
  const mustBeRoot = async (): Promise<void> => {
    const found = identityOf(folder);
    if (found === null) throw rootMissing(folder);
    if (found === root) return;
    if (!(await readFile(file, 'utf8').catch(() => '')).includes(last))
      throw rootReplaced(folder, 'it does not hold the last anchor');
    root = found;
  };
  return {
    name: file,
    async put(anchor) {
      if (last === '') await makeFolder(folder);
      else await mustBeRoot();
      const line = `${JSON.stringify(anchor)}\n`;
      const opened = await open(file, 'a');
      try {
        await opened.appendFile(line);
        await opened.datasync();
      } finally {
        await opened.close();
      }
      last = line;
      await mustBeRoot();
    },
    close: async () => {},
  };
}

/** A POST of JSON. Credentials in the URL go as HTTP Basic; whatever is not 2xx is a failure. */
export function urlPlace(text: string): AnchorLocation {
  if (!URL.canParse(text))
    throw new SkuaError(
      'bad_option',
      'The place for anchors is not a URL. Give one such as https://anchors.example.com/skua.',
      { option: 'Proof:Anchor' },
    );
  const url = new URL(text);
  const credentials =
    url.username === '' ? null : `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  url.username = '';
  url.password = '';
  const headers = {
    'content-type': 'application/json',
    ...(credentials !== null && { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }),
  };
  return {
    name: `${url.origin}${url.pathname}`,
    async put(anchor, signal) {
      const response = await fetch(url, {
        method: 'POST',
        body: JSON.stringify(anchor),
        headers,
        signal,
        redirect: 'error',
      });
      await response.body?.cancel();
      if (!response.ok)
        throw new SkuaError('io_error', `${url.origin} answered the anchor with ${response.status}.`, {
          status: response.status,
        });
    },
    close: async () => {},
  };
}

/** An object of its own for each anchor, never replaced. */
export function objectPlace(objects: ObjectStore, lockDays: number, nowMs: () => number): AnchorLocation {
  return {
    name: objects.place,
    async put(anchor, signal) {
      const bytes = encodeText(`${JSON.stringify(anchor)}\n`);
      const key = anchorKey(anchor);
      let outcome: 'created' | 'exists';
      if (lockDays === 0) outcome = await objects.create(key, bytes, signal);
      else if (objects.createLocked === undefined)
        throw new SkuaError(
          'bad_option',
          `${objects.place} does not support object lock: leave out Proof:LockDays, or name a bucket.`,
          { option: 'Proof:LockDays' },
        );
      else outcome = await objects.createLocked(key, bytes, nowMs() + lockDays * MS_PER_DAY, signal);
      if (outcome === 'exists') await mustSay(objects, key, anchor, signal);
    },
    close: () => objects.close(),
  };
}

/** The object is of an earlier attempt, or of another writer that came first: only its content decides. */
async function mustSay(objects: ObjectStore, key: string, anchor: Anchor, signal: AbortSignal): Promise<void> {
  const there = await objects.get(key, { signal });
  if (
    there !== null &&
    isDeepStrictEqual({ ...parseAnchor(decodeText(there), key), madeAt: '' }, { ...anchor, madeAt: '' })
  )
    return;
  throw new SkuaError(
    'proof_failed',
    `${key} in ${objects.place} already exists and is not the expected anchor: something else wrote it. Name another place, and find out what writes to this one.`,
    { key, place: objects.place },
  );
}

/** Of the same log at the same place it is the same anchor, but for the time at which it was made. */
function anchorKey({ chain, position, receipts }: Anchor): string {
  return `${chain}/${String(position).padStart(POSITION_DIGITS, '0')}-${String(receipts).padStart(RECEIPT_DIGITS, '0')}`;
}
