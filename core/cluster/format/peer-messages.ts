import { SkuaError } from '../../base/errors.ts';
import { guidFromText } from '../../base/guid.ts';
import type { NodeAddress } from '../../ports/nodes.ts';
import type { CommitsRequest, Epoch, Gossip, GossipEntry, LeadRequest, MemberState } from '../../ports/peers.ts';
import { MEMBERS_MAX } from '../membership/api.ts';

/**
 * What members tell one another comes from outside: other versions, other programs under the address of a member. It is
 * looked through before anything is believed, and only what belongs to it is kept. Everything here throws `bad_request`
 * with the name of the part that is wrong.
 */

const ADDRESS_LENGTH_MAX = 253;
const VERSION_LENGTH_MAX = 64;
/** A newer version may have states of its own, in which it neither leads nor follows as far as this one knows. */
const STATE_LENGTH_MAX = 64;
const PRIORITY_MAX = 2_147_483_647;

const STATES: Record<MemberState, true> = {
  Initializing: true,
  CatchingUp: true,
  Unknown: true,
  Follower: true,
  Leader: true,
  ResigningLeader: true,
  ReadOnlyReplica: true,
  ReadOnlyLeaderless: true,
  ShuttingDown: true,
  Shutdown: true,
};

type Fields = Readonly<Record<string, unknown>>;

/** The sender's own entry is the first, and no two entries have the same address. */
export function checkGossip(value: unknown): Gossip {
  const { logId, sender, entries } = fields(value, 'gossip');
  if (!Array.isArray(entries) || entries.length === 0 || entries.length > MEMBERS_MAX) throw wrong('entries');
  const gossip: Gossip = {
    logId: uuid(logId, 'logId'),
    sender: checkAddress(sender, 'sender'),
    entries: entries.map(checkEntry),
  };
  const own = gossip.entries[0]!.node;
  if (own.address !== gossip.sender.address || own.port !== gossip.sender.port) throw wrong('entries');
  return gossip;
}

export function checkCommitsRequest(value: unknown): CommitsRequest {
  const { logId, from, instanceId, waitMs } = fields(value, 'request');
  return {
    logId: uuid(logId, 'logId'),
    from: whole(from, 'from', 1),
    instanceId: uuid(instanceId, 'instanceId'),
    waitMs: whole(waitMs, 'waitMs', 0),
  };
}

export function checkLeadRequest(value: unknown): LeadRequest {
  const { logId, epochNumber } = fields(value, 'request');
  return { logId: uuid(logId, 'logId'), epochNumber: whole(epochNumber, 'epochNumber', -1) };
}

export function checkEpoch(value: unknown): Epoch {
  const { number, position, id, leaderInstanceId } = fields(value, 'epoch');
  return {
    number: whole(number, 'epoch.number', 0),
    position: whole(position, 'epoch.position', 0),
    id: epochId(id, 'epoch.id'),
    leaderInstanceId: epochId(leaderInstanceId, 'epoch.leaderInstanceId'),
  };
}

export function checkAddress(value: unknown, name: string): NodeAddress {
  const { address, port } = fields(value, name);
  if (
    typeof address !== 'string' ||
    address === '' ||
    address.length > ADDRESS_LENGTH_MAX ||
    !/^[\x21-\x7e]+$/.test(address)
  )
    throw wrong(`${name}.address`);
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) throw wrong(`${name}.port`);
  return { address, port };
}

/** What a member says of itself in its node object and in its gossip. */
export function checkIdentity(
  value: unknown,
): Pick<GossipEntry, 'node' | 'instanceId' | 'priority' | 'isReadOnlyReplica' | 'version'> {
  const { node, instanceId, priority, isReadOnlyReplica, version } = fields(value, 'entry');
  if (typeof priority !== 'number' || !Number.isInteger(priority) || Math.abs(priority) > PRIORITY_MAX)
    throw wrong('priority');
  if (typeof isReadOnlyReplica !== 'boolean') throw wrong('isReadOnlyReplica');
  if (typeof version !== 'string' || version.length > VERSION_LENGTH_MAX) throw wrong('version');
  return {
    node: checkAddress(node, 'node'),
    instanceId: uuid(instanceId, 'instanceId'),
    priority,
    isReadOnlyReplica,
    version,
  };
}

function checkEntry(value: unknown): GossipEntry {
  const entry = fields(value, 'entry');
  if (typeof entry['state'] !== 'string' || entry['state'].length > STATE_LENGTH_MAX) throw wrong('state');
  return {
    ...checkIdentity(entry),
    state: Object.hasOwn(STATES, entry['state']) ? (entry['state'] as MemberState) : 'Unknown',
    sentMs: amount(entry['sentMs'], 'sentMs'),
    bucketSilentMs: amount(entry['bucketSilentMs'], 'bucketSilentMs'),
    applied: whole(entry['applied'], 'applied', 0),
    lastCommitPosition: whole(entry['lastCommitPosition'], 'lastCommitPosition', -1),
    writerCheckpoint: whole(entry['writerCheckpoint'], 'writerCheckpoint', 0),
    chaserCheckpoint: whole(entry['chaserCheckpoint'], 'chaserCheckpoint', 0),
    epoch: entry['epoch'] === null ? null : checkEpoch(entry['epoch']),
    hears: entry['hears'] === null ? null : epochId(entry['hears'], 'hears'),
    scavengeId: entry['scavengeId'] === null ? null : uuid(entry['scavengeId'], 'scavengeId'),
  };
}

function fields(value: unknown, name: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(name);
  return value as Fields;
}

/** Texts of UUIDs are compared, so there is one spelling only. */
function uuid(value: unknown, name: string): string {
  if (typeof value !== 'string' || value !== value.toLowerCase() || !guidFromText(value, new Uint8Array(16), 0))
    throw wrong(name);
  return value;
}

/** As the record has it: in a log that another program wrote it may be empty, or spelled otherwise. */
function epochId(value: unknown, name: string): string {
  if (typeof value !== 'string' || !/^[0-9a-fA-F-]{0,36}$/.test(value)) throw wrong(name);
  return value;
}

function whole(value: unknown, name: string, least: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least) throw wrong(name);
  return value;
}

/** Milliseconds, possibly with a fraction. */
function amount(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0 || value > Number.MAX_SAFE_INTEGER)
    throw wrong(name);
  return value;
}

function wrong(name: string): SkuaError {
  return new SkuaError(
    'bad_request',
    `A message from a cluster member has no valid "${name}": check that all members run compatible versions.`,
    { field: name },
  );
}
