/**
 * A file is written anew for what is at least this part of it: so each rewriting makes the file of an event larger by
 * a quarter at least, and there are few until the file is full.
 */
const WORTH_SHARE = 1 / 4;

/** What grouping needs of a physical chunk. */
interface MergeCandidate {
  readonly startNumber: number;
  readonly endNumber: number;
  /** Bytes of records, without header, map and footer. */
  readonly dataBytes: number;
}

export interface MergePolicy {
  readonly chunkSize: number;
  /** All that fit one file are merged, whatever has to be written anew for it. */
  readonly always: boolean;
}

/** Whether so many bytes may be copied to get them into one file with so many others. */
export function isWorthCopying(bytes: number, otherBytes: number): boolean {
  return otherBytes >= bytes * WORTH_SHARE;
}

/**
 * One pass over the physical chunks in the order of the log: the groups of two and more neighbours that are merged.
 * Neighbours that fit one file become one once a chunk follows that does not fit, for then no later run adds to them.
 * The last ones, to which each run adds its small chunk, are merged where that is worth it. Passes are repeated until
 * one gives no group.
 */
export function mergeGroups<T extends MergeCandidate>(chunks: readonly T[], policy: MergePolicy): T[][] {
  const groups: T[][] = [];
  let group: T[] = [];
  let sizeBytes = 0;
  for (const chunk of chunks) {
    const last = group[group.length - 1];
    if (
      sizeBytes + chunk.dataBytes > policy.chunkSize ||
      (last !== undefined && last.endNumber + 1 !== chunk.startNumber)
    ) {
      groups.push(group);
      group = [];
      sizeBytes = 0;
    }
    group.push(chunk);
    sizeBytes += chunk.dataBytes;
  }
  groups.push(...(policy.always ? [group] : openGroups(group)));
  return groups.filter(({ length }) => length >= 2);
}

/**
 * Of the last neighbours, which all fit one file: a chunk joins the one before it unless it is too small a part of it.
 * What remains gets smaller by more than four times from each file to the next.
 */
function openGroups<T extends MergeCandidate>(chunks: readonly T[]): T[][] {
  const groups: { members: T[]; bytes: number }[] = [];
  for (const chunk of chunks) {
    let next = { members: [chunk], bytes: chunk.dataBytes };
    for (let before = groups.at(-1); before !== undefined && isWorthCopying(before.bytes, next.bytes);) {
      groups.pop();
      next = { members: [...before.members, ...next.members], bytes: before.bytes + next.bytes };
      before = groups.at(-1);
    }
    groups.push(next);
  }
  return groups.map(({ members }) => members);
}
