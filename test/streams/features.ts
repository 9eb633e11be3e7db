import { beforeEach } from 'vitest';

/**
 * Features of a store beside what its door says, each with the beginnings of the names of tests that are about it. A
 * store that has no such feature leaves these tests out.
 */

/**
 * The log in memory is looked into, or gets what no writer puts there: records of explicit transactions, holes, groups
 * that fail. What these tests are about is the same code on objects, or has a test of its own there.
 */
export const LOG_IN_MEMORY: readonly string[] = [
  'share transaction and correlation, and mark first and last',
  'of an empty one, a tombstone and an epoch are those of the reference',
  'begin an epoch with a system record and its event',
  'are completed where a write does not fit, which is never split',
  'end behind a write that asks for it',
  'of the disk reject the whole group, and the next one works',
  'of completing a chunk reject the write that needs it',
  'of a sync end all writing but no reading',
  'of nothing: closing finishes what is in flight and rejects the rest',
  'continues the numbers and moves $tb',
  'keeps other members, also within one group and after a restart',
  'is visited once in pages of',
  'is visited once in pages that look at',
  'starts at every event, inclusive forward and exclusive backward',
  'starts at the next event where no record begins',
  'has the positions of explicit transactions',
  'filters {',
  'are read by their index entries',
  'pass over what a scavenge removed',
  'take the lowest position of several for one number',
  'are answered when the original is in the same group',
  'are written again',
  'fill groups',
  'writes all in the order of the request',
  'fits into one chunk, or is refused',
  'hold all who come while the process looks at its sockets once, though a write takes no time',
  'hold all who wait for their answer before they write again',
  'takes as many streams as it may',
  'packs states that are not used, and unpacks them as they were',
];

/** Leaves out the tests of a feature. The set gets the beginnings of names that were met. */
export function withoutFeature(names: readonly string[], why: string): ReadonlySet<string> {
  const met = new Set<string>();
  beforeEach(({ task, skip }) => {
    const name = names.find((beginning) => task.name.startsWith(beginning));
    if (name === undefined) return;
    met.add(name);
    skip(why);
  });
  return met;
}
