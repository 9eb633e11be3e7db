import { equalBytes } from '../bytes.ts';
import { gather } from './create-known.ts';
import { logEndOf } from './manifests.ts';
import type { Manifest, ShippedPiece } from './manifest.ts';
import type { Repository } from './repository-api.ts';
import type { ShippableLog } from './shipper-log.ts';

/** Bytes of log that are compared with what is in the repository when the shipper takes its place there. */
const COMPARED_BYTES = 65_536;

/** Where the shipper stands: behind the last piece after its base. */
export interface Place {
  readonly manifest: Manifest;
  /** Manifests that are known to be the base itself, or no newer ones of this node. */
  readonly seen: Set<string>;
  position: number;
  /** When the log was shipped up to there; when the base was made, where nothing was. */
  shippedMs: number;
  pieces: number;
}

/** A node and its log. */
export interface PlaceOwner {
  readonly nodeId: string;
  readonly log: ShippableLog;
}

/** The newest backup of the node and what was shipped after it, as far as it is the log that is here; otherwise why nothing can be shipped behind it. */
export async function findPlace({ nodeId, log }: PlaceOwner, repository: Repository): Promise<Place | 'none' | 'damaged' | 'other'> {
  const manifest = await repository.newestOf(nodeId);
  if (manifest === null) return 'none';
  let isDamaged = false;
  const pieces = await repository.shipped(manifest.id, () => { isDamaged = true; });
  if (isDamaged) return 'damaged';
  const last = pieces.at(-1);
  const position = last?.to ?? logEndOf(manifest);
  if (!reaches(log, position)) return 'other';
  if (last === undefined ? !(await endsAlike(log, repository, manifest)) : !(await isOurs(log, repository, last))) return 'other';
  return { manifest, seen: new Set([manifest.id]), position, shippedMs: last?.shippedMs ?? manifest.createdMs, pieces: pieces.length };
}

/** Backups are also made from outside, and removed: what is shipped has to follow the newest that is there. */
export async function isSuperseded({ nodeId }: PlaceOwner, repository: Repository, { manifest, seen }: Place): Promise<boolean> {
  const ids = await repository.manifestsFrom(manifest);
  if (ids[0] !== manifest.id) return true;
  const unseen = ids.filter((id) => !seen.has(id));
  if (unseen.length === 0) return false;
  const newest = await repository.newestOf(nodeId);
  // Those of other nodes, which were listed before, are not asked for again.
  for (const id of unseen) seen.add(id);
  return newest?.id !== manifest.id;
}

/** The same bytes are as good, whoever shipped them: this process when a reply was lost, or one before it. */
export async function isOurs(log: ShippableLog, repository: Repository, piece: ShippedPiece): Promise<boolean> {
  // What a scavenge has rewritten can't be compared any more; no log is ever cut as far back.
  if (log.isRewritten(Math.floor(piece.from / log.chunkSizeBytes))) return true;
  if (!reaches(log, piece.to)) return false;
  const there = await repository.readShipped(piece);
  const here = await log.read(piece.from, piece.to);
  return there.length === here.length && equalBytes(there, 0, here, 0, here.length);
}

async function endsAlike(log: ShippableLog, repository: Repository, { tail }: Manifest): Promise<boolean> {
  const last = tail?.segments.at(-1);
  if (last === undefined || log.isRewritten(tail!.number)) return true;
  const length = Math.min(COMPARED_BYTES, last.sizeBytes);
  const there = await gather(repository.readBlob(last, { from: last.sizeBytes - length, length }), length);
  return equalBytes(there, 0, await log.read(last.to - length, last.to), 0, length);
}

/** The log has data up to this position, as far as can be told: of a chunk that a scavenge has rewritten, only what it has left is known. */
export function reaches(log: ShippableLog, position: number): boolean {
  const number = Math.floor(position / log.chunkSizeBytes);
  return position <= log.end && (log.isRewritten(number) || position <= log.dataEnd(number));
}
