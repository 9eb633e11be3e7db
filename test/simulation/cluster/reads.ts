import { isSkuaError } from '../../../core/base/errors.ts';
import { type AllPosition, PAGE_EVENTS_MAX, type StoredEvent } from '../../../core/streams/api.ts';
import type { OpenedMember } from './open-member.ts';
import { PASSING } from './codes.ts';
import type { SimMember } from './sim-member.ts';
import { KEPT } from './truth.ts';
import type { World } from './world.ts';

/** A member answers reads once it has reached the end that the log had at its opening. */
function readable(member: SimMember): OpenedMember | null {
  const { opened } = member;
  return opened === null || opened.log?.isCaughtUp === false ? null : opened;
}

/**
 * Reads a stream at a member, and compares it with the log, with what was seen there before, and with what was
 * acknowledged there.
 */
export async function checkStream(world: World, member: SimMember, stream: string): Promise<void> {
  const { judge } = world;
  const opened = readable(member);
  if (opened === null) return;
  const { run } = member;
  const who = run.process.name;
  const least = member.seen.get(stream) ?? -1;
  const leastEnd = Math.max(member.seenEnd, opened.store.end);
  judge.count('reads');
  let events: readonly StoredEvent[] = [];
  let isDeleted = false;
  try {
    const page = await opened.store.readStream(stream, { direction: 'forward', from: 0, count: PAGE_EVENTS_MAX });
    events = page.events;
  } catch (error) {
    if (isSkuaError(error, 'stream_deleted')) isDeleted = true;
    else if (!isSkuaError(error, 'stream_not_found')) {
      if (!isSkuaError(error) || !PASSING.includes(error.code))
        judge.problem(`${who} fails to read ${stream}: ${String((error as Error).stack)}`);
      return;
    }
  }
  const truth = judge.truth.streams.get(stream) ?? [];
  for (const event of events) {
    const { number, id, position } = event;
    judge.hides(who, leastEnd, event);
    const record = judge.truth.byPosition.get(position);
    if (record?.id !== id || record.prepare!.stream !== stream || record.prepare!.number !== number)
      judge.problem(`${who} shows ${id} at ${position} as event ${number} of ${stream}, which the log does not`);
  }
  if (!KEPT.includes(stream)) {
    const tombstone = truth.find(({ prepare }) => prepare!.isTombstone);
    if (tombstone !== undefined && tombstone.position < leastEnd && !isDeleted)
      judge.problem(`${who} shows ${stream}, which was deleted at ${tombstone.position}, before ${leastEnd}`);
    return;
  }
  if (isDeleted) judge.problem(`${who} holds that ${stream} is deleted`);
  const last = events.at(-1)?.number ?? -1;
  if (last < least)
    judge.problem(
      `${who} shows ${stream} up to event ${last}, and ${least} was seen there, or acknowledged there, before`,
    );
  if (events.some(({ number }, i) => number !== i))
    judge.problem(`${who} shows ${stream} with a gap: ${events.map(({ number }) => number).join(' ')}`);
  for (const { position, prepare } of truth)
    if (position < leastEnd && prepare!.number > last)
      judge.problem(
        `${who} does not show event ${prepare!.number} of ${stream} at ${position}, though it shows the log to ${leastEnd}`,
      );
  // Nobody is told of what a process reads that is not answered any more.
  if (member.run === run) member.seen.set(stream, Math.max(last, member.seen.get(stream) ?? -1));
}

/** Reads `$all` at a member from its beginning. True when it could be read to an end. */
export async function checkAll(world: World, member: SimMember): Promise<boolean> {
  const { judge } = world;
  const opened = readable(member);
  if (opened === null) return false;
  const { run } = member;
  const least = Math.max(member.seenEnd, opened.store.end);
  const events: StoredEvent[] = [];
  judge.count('reads');
  try {
    for (let from: AllPosition | 'start' = 'start'; ;) {
      const page: Awaited<ReturnType<typeof opened.store.readAll>> = await opened.store.readAll({
        direction: 'forward',
        from,
        count: 1_000,
      });
      events.push(...page.events);
      from = page.next;
      if (page.isEnd) break;
    }
  } catch (error) {
    if (!isSkuaError(error) || !PASSING.includes(error.code))
      judge.problem(`${run.process.name} fails to read $all: ${String((error as Error).stack)}`);
    return false;
  }
  judge.shows(run.process.name, 0, least, events);
  const at = new Set(events.map(({ position }) => position));
  for (const position of member.removed)
    if (at.has(position))
      judge.problem(`${run.process.name} shows the event at ${position} again, which a scavenge had removed`);
  if (member.run === run) member.seenEnd = Math.max(member.seenEnd, least);
  return true;
}
