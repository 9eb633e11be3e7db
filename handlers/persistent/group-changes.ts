import type { GroupChange, NewGroup, PersistentSubscriptions, StartFrom } from '../../core/persistent/api.ts';
import type { AuditAction } from '../../core/ports/audit.ts';
import { requireAccess } from '../http/authorization.ts';
import { noteForAudit } from '../http/context.ts';
import type { App, Call } from '../http/context.ts';
import { checkStream } from '../streams/access.ts';

/** What is done to groups, whichever protocol asks for it: with what the audit records, and in whose name. */

export interface Group {
  /** `$all` for the whole log. */
  readonly stream: string;
  readonly group: string;
}

export function create(
  call: Call,
  groups: PersistentSubscriptions,
  { stream, group }: Group,
  options: NewGroup,
): Promise<void> {
  note(call, { stream, group }, options);
  return groups.create(stream, group, options, nameOf(call));
}

export function update(
  call: Call,
  groups: PersistentSubscriptions,
  { stream, group }: Group,
  options: GroupChange,
): Promise<void> {
  note(call, { stream, group }, options);
  return groups.update(stream, group, options, nameOf(call));
}

function note(call: Call, group: Group, { settings: { strategy }, from }: GroupChange): void {
  noteForAudit(call, {
    target: targetOf(group),
    details: { ...(strategy !== undefined && { strategy }), ...(from !== undefined && { from: startText(from) }) },
  });
}

function startText(from: StartFrom): string | number {
  return typeof from === 'object' ? `${from.commit}/${from.prepare}` : from;
}

export function reset(
  call: Call,
  groups: PersistentSubscriptions,
  { stream, group }: Group,
  from: StartFrom,
): Promise<void> {
  noteForAudit(call, { target: targetOf({ stream, group }), details: { from: startText(from) } });
  return groups.reset(stream, group, from, nameOf(call));
}

export function remove(call: Call, groups: PersistentSubscriptions, { stream, group }: Group): Promise<void> {
  noteForAudit(call, { target: targetOf({ stream, group }) });
  return groups.delete(stream, group, nameOf(call));
}

/** `stopAt`: the number before which the work on parked messages ends; null for all of them. */
export function replayParked(
  call: Call,
  groups: PersistentSubscriptions,
  { stream, group }: Group,
  stopAt: number | null,
): Promise<void> {
  noteForAudit(call, { target: targetOf({ stream, group }), details: { stopAt } });
  return groups.replayParked(stream, group, stopAt);
}

export function truncateParked(
  call: Call,
  groups: PersistentSubscriptions,
  { stream, group }: Group,
  stopAt: number | null,
): Promise<void> {
  noteForAudit(call, { target: targetOf({ stream, group }), details: { stopAt } });
  return groups.truncateParked(stream, group, stopAt);
}

/**
 * Reading for a group takes a user, and the right to read its stream; that of `$all` for those that take the whole log.
 */
export async function mayProcess(call: Call, app: App, stream: string): Promise<void> {
  requireAccess(call, app, 'authenticated');
  await checkStream(call, app, 'read', stream);
}

/** The user in whose name a change is made, as its configuration has it. */
function nameOf({ principal }: Call): string {
  return principal.name ?? 'anonymous';
}

/** As the names of groups' own streams have it. */
export function targetOf({ stream, group }: Group): string {
  return `${stream}::${group}`;
}

/** What the audit calls them. */
export const ACTIONS = {
  create: 'subscription.create',
  update: 'subscription.update',
  remove: 'subscription.delete',
  reset: 'subscription.reset',
  replay: 'subscription.replay-parked',
  truncate: 'subscription.truncate-parked',
  restart: 'subscription.restart',
} as const satisfies Readonly<Record<string, AuditAction>>;
