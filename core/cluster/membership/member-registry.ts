import { isSkuaError, SkuaError } from '../../base/errors.ts';
import type { Log } from '../../ports/log.ts';
import { type NodeAddress, nodeKey } from '../../ports/nodes.ts';
import { listKind, type KeyKind } from '../../ports/object-kinds.ts';
import { OBJECT_KEY_PART_LENGTH_MAX, type ObjectStore } from '../../ports/object-store.ts';
import type { GossipEntry } from '../../ports/peers.ts';
import { decodeText, encodeText } from '../../base/text.ts';
import { MEMBERS_MAX } from './api.ts';
import { checkIdentity } from '../format/peer-messages.ts';

/**
 * The objects `nodes/<address>` under the prefix of the log, by which members find each other at their start (rule 8).
 * They are written at the start, at the stop, and when something of it changes; nobody's being alive follows from them.
 */
export interface NodeNote extends Pick<
  GossipEntry,
  'node' | 'instanceId' | 'priority' | 'isReadOnlyReplica' | 'version'
> {
  /** By the clock of the member. */
  readonly writtenMs: number;
  /** It was stopped as planned. */
  readonly isStopped: boolean;
}

export const NODES_PREFIX = 'nodes/';
/** An address, `_3a` for the colon, and a port. */
const NODES: KeyKind = { prefix: NODES_PREFIX, rest: /^[A-Za-z0-9._-]{1,250}_3a\d{1,5}$/ };
/** Bytes of a node object; what is longer was not written by a member. */
const NOTE_BYTES_MAX = 4_096;

/**
 * Letters, digits, `.` and `-` stand for themselves, everything else as `_` and its code in two hex digits; so no two
 * addresses share a key.
 */
export function nodeObjectKey(node: NodeAddress): string {
  const part = nodeKey(node).replace(
    /[^A-Za-z0-9.-]/g,
    (character) => `_${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
  if (part.length > OBJECT_KEY_PART_LENGTH_MAX) {
    throw new SkuaError(
      'bad_option',
      `The address ${nodeKey(node)} of this member is too long for the name of an object: give it a shorter one with --node-host-advertise-as.`,
      { address: nodeKey(node) },
    );
  }
  return NODES_PREFIX + part;
}

export class Registry {
  readonly #objects: ObjectStore;
  readonly #log: Log;
  /** What was read, by key, for as long as the object is the same. */
  readonly #read = new Map<
    string,
    { readonly modifiedMs: number; readonly sizeBytes: number; readonly note: NodeNote | null }
  >();

  constructor(objects: ObjectStore, log: Log) {
    this.#objects = objects;
    this.#log = log;
  }

  async write(note: NodeNote, signal?: AbortSignal): Promise<void> {
    await this.#objects.put(
      nodeObjectKey(note.node),
      encodeText(`${JSON.stringify({ format: 1, ...note })}\n`),
      signal,
    );
  }

  /** Of this address; null when there is none that can be understood. */
  async read(node: NodeAddress, signal?: AbortSignal): Promise<NodeNote | null> {
    const key = nodeObjectKey(node);
    return this.#decode(
      key,
      await this.#objects.get(key, { length: NOTE_BYTES_MAX, ...(signal !== undefined && { signal }) }),
    );
  }

  /** All members that have made themselves known: one LIST, and a GET for each object that is new or changed. */
  async list(signal?: AbortSignal): Promise<NodeNote[]> {
    const notes: NodeNote[] = [];
    const keys = new Set<string>();
    for await (const { key, modifiedMs, sizeBytes } of listKind(
      this.#objects,
      NODES,
      signal === undefined ? {} : { signal },
    )) {
      if (keys.size === MEMBERS_MAX) {
        this.#log.warn(
          'there are more node objects than tracked members: remove those of members that no longer exist',
          { prefix: NODES_PREFIX, limit: MEMBERS_MAX },
        );
        break;
      }
      keys.add(key);
      let known = this.#read.get(key);
      if (known === undefined || known.modifiedMs !== modifiedMs || known.sizeBytes !== sizeBytes) {
        const bytes = await this.#objects.get(key, { length: NOTE_BYTES_MAX, ...(signal !== undefined && { signal }) });
        known = { modifiedMs, sizeBytes, note: this.#decode(key, bytes) };
        this.#read.set(key, known);
      }
      if (known.note !== null) notes.push(known.note);
    }
    for (const key of this.#read.keys()) if (!keys.has(key)) this.#read.delete(key);
    return notes;
  }

  async remove(node: NodeAddress): Promise<void> {
    await this.#objects.remove([nodeObjectKey(node)]);
  }

  /** What can't be understood is passed over: it says nothing about a member, and its member writes it again. */
  #decode(key: string, bytes: Uint8Array | null): NodeNote | null {
    if (bytes === null) return null;
    try {
      const value = JSON.parse(decodeText(bytes)) as { readonly writtenMs?: unknown; readonly isStopped?: unknown };
      const identity = checkIdentity(value);
      const { writtenMs, isStopped } = value;
      if (
        nodeObjectKey(identity.node) !== key ||
        typeof writtenMs !== 'number' ||
        !Number.isFinite(writtenMs) ||
        writtenMs < 0
      )
        throw new SyntaxError('it belongs to another address, or has no time');
      return { ...identity, writtenMs, isStopped: isStopped === true };
    } catch (error) {
      if (!isSkuaError(error, 'bad_request') && !(error instanceof SyntaxError) && !isSkuaError(error, 'bad_option'))
        throw error;
      this.#log.warn('a node object is invalid and was skipped', { key, error: String(error) });
      return null;
    }
  }
}

/** A member of which only its node object is known yet. */
export function entryOf(note: NodeNote): GossipEntry {
  const { node, instanceId, priority, isReadOnlyReplica, version, writtenMs, isStopped } = note;
  return {
    node,
    instanceId,
    priority,
    isReadOnlyReplica,
    version,
    sentMs: writtenMs,
    state: isStopped ? 'Shutdown' : 'Unknown',
    applied: 0,
    lastCommitPosition: -1,
    writerCheckpoint: 0,
    chaserCheckpoint: 0,
    epoch: null,
    hears: null,
    bucketSilentMs: 0,
    scavengeId: null,
  };
}
