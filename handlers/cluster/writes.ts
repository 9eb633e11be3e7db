import type { HeldWrite, CarriedWrite, WriteOutcome } from '../../core/cluster/api.ts';
import { formatOutcomes, outcomeOf, readWrites } from '../../core/cluster/format/carried-writes.ts';
import { WRITES_TYPE } from '../../core/cluster/writes-elsewhere/writes-elsewhere.ts';
import { SkuaError } from '../../core/base/errors.ts';
import type { Security, UserNow, Principal } from '../../core/security/api.ts';
import { isAdministrator } from '../../core/base/principal.ts';
import { bothAllow, unlessChanged } from '../../core/streams/api.ts';
import type { Authorize } from '../../core/streams/api.ts';
import { performWrite } from '../../core/streams/layer/layer.ts';
import { refusal } from '../http/authorization.ts';
import { readBody } from '../http/body.ts';
import { goneOf } from '../http/context.ts';
import type { App, ClusterFeature, Handler } from '../http/context.ts';
import { isForOthers } from '../http/forwarded.ts';
import { featureOf } from '../http/presence.ts';
import { commonHeaders } from '../http/reply.ts';

/**
 * What a client may send is at most so many times as long here: of an element of a message, which has 16 bytes, the id
 * alone has 38.
 */
const LONGER = 4;
/** And so many bytes beside it. */
const BESIDE_BYTES = 65_536;
/** Longer ones are taken apart in turn, in bytes. */
const LONG_BYTES = 262_144;

/**
 * POST `/cluster/append`: what another member wants written, for its clients or for itself. Each write is decided by
 * itself, in the order in which they stand.
 */
export const append: Handler = async (call, app) => {
  const cluster = featureOf(call, app, 'cluster');
  if (call.request.headers.get('content-type') !== WRITES_TYPE)
    throw new SkuaError('unsupported_media_type', `Writes of members come as ${WRITES_TYPE}.`);
  const body = await readBody(call, app, LONGER * app.options.bodyBytesMax + BESIDE_BYTES);
  call.isLong = body.length > LONG_BYTES;
  const { epoch, writes } = call.isLong
    ? await app.turns.slice(call.countedAs, () => readWrites(body))
    : readWrites(body);
  const isGone = goneOf(call, app);
  const allowed = writes.map((write) => allowedBy(write, app));
  // All of them are begun in one step, so that nothing comes between two of one caller.
  const known = allowed.some((each) => each instanceof Promise)
    ? await Promise.all(allowed)
    : (allowed as readonly Allowed[]);
  const outcomes = await Promise.all(
    writes.map((write, i) =>
      decide(write, known[i]!, epoch, cluster.patience.beginPassedOn(write.atMs, isGone), cluster),
    ),
  );
  return {
    status: 200,
    statusText: 'OK',
    headers: { ...commonHeaders(call.methods), 'content-type': 'application/json; charset=utf-8' },
    body: formatOutcomes(cluster.log.end, outcomes),
  };
};

async function decide(
  write: CarriedWrite,
  allowed: Allowed,
  epoch: number,
  held: HeldWrite,
  { fence, copy }: ClusterFeature,
): Promise<WriteOutcome> {
  const guard = fence.guard(epoch, held);
  if (!guard.isOpen) return null;
  try {
    if (allowed instanceof Error) throw allowed;
    return { result: await written(write, allowed, guard.authorize, copy) };
  } catch (error) {
    // Nothing was done here: the member that has the request asks the next one.
    return isForOthers(error) ? null : outcomeOf(error);
  }
}

function written(
  { kind, writes, checks, isRepeatable, unchanged, condition }: CarriedWrite,
  lists: Lists,
  fence: Authorize,
  copy: ClusterFeature['copy'],
): Promise<unknown> {
  const guard = unchanged.length === 0 ? fence : bothAllow(fence, unlessChanged(unchanged))!;
  const guarded = (stream: string): Authorize => bothAllow(guard, lists.get(stream) ?? null)!;
  return performWrite(copy, {
    kind,
    isRepeatable,
    condition,
    writes: writes.map((each) => ({ ...each, authorize: guarded(each.stream) })),
    checks: checks.map(({ stream, expectedVersion, isAsked }) => ({
      stream,
      expectedVersion,
      ...(isAsked && { authorize: guarded(stream) }),
    })),
  });
}

/** What decides about each stream in its turn; absent for what needs no asking. */
type Lists = ReadonlyMap<string, Authorize | null>;
/** Or why nothing allows the write. */
type Allowed = Lists | Error;

const NO_LISTS: Lists = new Map();

/** Whom the write is for, as he is here, and what he may. */
function allowedBy(write: CarriedWrite, { security }: App): Allowed | Promise<Allowed> {
  if (security === null) return NO_LISTS;
  try {
    const { name, roles } = write.by;
    if (roles !== null) return caught(listsFor(write, { name, roles }, null, security));
    const found = security.authenticator.userNow!(name!);
    return caught(
      found instanceof Promise
        ? found.then((user) => listsForUser(write, user, security))
        : listsForUser(write, found, security),
    );
  } catch (error) {
    return error as Error;
  }
}

function caught(lists: Lists | Promise<Lists>): Allowed | Promise<Allowed> {
  return lists instanceof Promise ? lists.catch((error: unknown) => error as Error) : lists;
}

function listsForUser(write: CarriedWrite, user: UserNow | null, security: Security): Lists | Promise<Lists> {
  if (user === null)
    throw new SkuaError('not_authenticated', `The user ${write.by.name} no longer exists or is disabled.`);
  // Asked in the write's turn: a user that has been changed since it was looked up here is looked up anew, since the
  // member asks again.
  const unlessOther = unlessChanged([user.unchanged]);
  return listsFor(
    write,
    user.principal,
    (metadata, endOf) =>
      unlessOther(metadata, endOf) === null
        ? null
        : new SkuaError('not_ready', 'The user is being changed: try again.'),
    security,
  );
}

function listsFor(
  { by, kind, writes, checks }: CarriedWrite,
  principal: Principal,
  same: Authorize | null,
  { access }: Security,
): Lists | Promise<Lists> {
  if (by.asks === 'administrators' && !isAdministrator(principal))
    throw refusal(principal, 'Only members of $admins may do this.');
  const streams = new Set(writes.map(({ stream }) => stream));
  for (const { stream, isAsked } of checks) if (isAsked) streams.add(stream);
  const lists = new Map<string, Authorize | null>();
  const waiting: Promise<unknown>[] = [];
  for (const stream of streams) {
    const list =
      by.asks === 'list'
        ? access.authorizeWrite(principal, kind === 'soft' || kind === 'hard' ? 'delete' : 'write', stream)
        : null;
    if (list instanceof Promise) waiting.push(list.then((known) => lists.set(stream, bothAllow(same, known))));
    else lists.set(stream, bothAllow(same, list));
  }
  return waiting.length === 0 ? lists : Promise.all(waiting).then(() => lists);
}
