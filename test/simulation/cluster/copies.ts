import { streamHasher } from '../../../core/base/stream-hash.ts';
import { checkClosed } from '../../scavenge/random-check.ts';
import { emptiedBytes, readRawLog } from '../../scavenge/raw-log.ts';
import { isCrash } from '../../support/crash.ts';
import type { SimMember } from './sim-member.ts';
import { textOf } from './judge.ts';
import type { World } from './world.ts';

/**
 * Reads the files of a copy and compares them with the log: the same records at the same positions, and nothing missing
 * but what a scavenge may have removed; what was gone stays gone.
 */
export async function checkCopy(world: World, member: SimMember): Promise<void> {
  const { judge } = world;
  const { opened, run } = member;
  if (opened === null || !opened.log.isCaughtUp) return;
  const { end } = opened.store;
  const there = new Set<number>();
  const who = run.process.name;
  const raw = await readRawLog(member.storage).catch((error: unknown) => {
    // A chunk is cut to its length while it is completed, and the power may fail at this read as at any other.
    if (!(error instanceof RangeError || isCrash(error))) throw error;
    return null;
  });
  if (raw === null) return;
  for (const { position, bytes } of raw) {
    if (position >= end) continue;
    there.add(position);
    const record = judge.truth.byPosition.get(position);
    if (record === undefined) judge.problem(`the copy of ${who} has a record at ${position}, where the log has none`);
    else if (record.bytes === bytes || (judge.truth.emptied().has(position) && bytes === emptiedBytes(record))) {
      // It says nothing of marks.
    } else if (judge.truth.isRedactedBy(position) && bytes === emptiedBytes(record, 0xff)) judge.count('blackened');
    else judge.problem(`the copy of ${who} has another record than ${textOf(record)}`);
    if (member.removed.has(position))
      judge.problem(
        `the copy of ${who} has ${record === undefined ? position : textOf(record)} again, which a scavenge had removed from it`,
      );
  }
  const doomed = judge.truth.doomed();
  let removed = 0;
  for (const record of judge.truth.records) {
    if (record.position >= end || there.has(record.position)) continue;
    removed++;
    member.removed.add(record.position);
    if (!doomed.has(record.position))
      judge.problem(`the copy of ${who} has no ${textOf(record)}, which no scavenge may remove`);
  }
  if (removed > 0) judge.count('scavenged');
}

/** Closes a copy, and has it looked at as any directory. */
export async function checkDirectory(world: World, member: SimMember): Promise<void> {
  const { opened, run } = member;
  if (opened === null) return;
  await opened.close();
  // What a full disk kept from being written to its end the next start removes.
  const problems = (await checkClosed(member.storage, streamHasher)).filter(
    (problem) => !problem.endsWith('belongs to nothing'),
  );
  for (const problem of problems) world.judge.problem(`the directory of ${run.process.name}: ${problem}`);
}
