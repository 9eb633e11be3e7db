import type { Clock } from '../../ports/clock.ts';
import { lagMs, SLOW_MS } from '../../base/pace.ts';
import { addressGroup } from '../../base/address-group.ts';

/**
 * Bodies of calls that are arriving. Nothing is known of their senders yet, so nothing is kept on their word: what
 * counts is the bytes that are here and the bodies that are open, never a length that a header declares. Where that
 * comes to a limit, the body that lags most goes, so that silent or slow senders stand in no other's way.
 */

export interface ArrivalLimits {
  /**
   * Bytes of bodies that have arrived in part, of all connectors, of one connector, and from one address (or IPv6
   * network, see `addressGroup`).
   */
  readonly arrivingBytesMax: number;
  readonly connectorArrivingBytesMax: number;
  readonly addressArrivingBytesMax: number;
  /** The number of those bodies. */
  readonly arrivingMax: number;
  readonly connectorArrivingMax: number;
  readonly addressArrivingMax: number;
}

export const ARRIVAL_LIMITS: ArrivalLimits = {
  arrivingBytesMax: 268_435_456,
  connectorArrivingBytesMax: 134_217_728,
  addressArrivingBytesMax: 67_108_864,
  arrivingMax: 4_096,
  connectorArrivingMax: 2_048,
  addressArrivingMax: 512,
};

/** Why a body goes: its sender is slow, or all others are faster than it and there is no room. */
export type Dropped = 'slow' | 'busy';

/** A body that is arriving; `end` must follow its beginning, however it ends. */
export interface Arrival {
  /** So many bytes more are here. False once the body has been dropped. */
  arrived(bytes: number): boolean;
  end(): void;
}

interface Body {
  readonly groups: readonly Group[];
  readonly beganMs: number;
  readonly onDropped: (why: Dropped) => void;
  bytes: number;
  isOver: boolean;
}

/** Bodies that share a limit. */
class Group {
  /** In the order of their beginnings. */
  readonly bodies = new Set<Body>();
  readonly #bodiesMax: number;
  readonly #bytesMax: number;
  bytes = 0;

  constructor(bodiesMax: number, bytesMax: number) {
    this.#bodiesMax = bodiesMax;
    this.#bytesMax = bytesMax;
  }

  /** The body that must go first where the group is beyond a limit; null where it is not. */
  surplus(nowMs: number): Body | null {
    const isCrowded = this.bodies.size > this.#bodiesMax;
    if (!isCrowded && this.bytes <= this.#bytesMax) return null;
    let slowest: Body | null = null;
    for (const body of this.bodies) {
      // A sender that has sent nothing takes none of the bytes.
      if (!isCrowded && body.bytes === 0) continue;
      if (slowest === null || lagOf(body, nowMs) > lagOf(slowest, nowMs)) slowest = body;
    }
    return slowest;
  }
}

function lagOf({ beganMs, bytes }: Body, nowMs: number): number {
  return lagMs(nowMs - beganMs, bytes);
}

export class Arrivals {
  readonly #clock: Clock;
  readonly #limits: ArrivalLimits;
  readonly #all: Group;
  readonly #byConnector = new Map<string, Group>();
  readonly #byAddress = new Map<string, Group>();

  constructor(clock: Clock, limits: ArrivalLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#all = new Group(limits.arrivingMax, limits.arrivingBytesMax);
  }

  /** Bodies that are arriving, and what is here of them. */
  get size(): number {
    return this.#all.bodies.size;
  }
  get bytes(): number {
    return this.#all.bytes;
  }

  /**
   * A body begins to arrive. `address` is where it comes from, null where that is not known. `onDropped` may be called
   * at once, and at most once: then the body is to be forgotten.
   */
  begin(connectorId: string, address: string | null, onDropped: (why: Dropped) => void): Arrival {
    const { connectorArrivingMax, connectorArrivingBytesMax, addressArrivingMax, addressArrivingBytesMax } =
      this.#limits;
    const groups = [
      groupOf(this.#byConnector, connectorId, connectorArrivingMax, connectorArrivingBytesMax),
      this.#all,
    ];
    const place = address === null ? null : addressGroup(address);
    // The narrowest first: a sender that makes a crowd alone goes before others have to.
    if (place !== null) groups.unshift(groupOf(this.#byAddress, place, addressArrivingMax, addressArrivingBytesMax));
    const body: Body = { groups, beganMs: this.#clock.monotonicMs(), onDropped, bytes: 0, isOver: false };
    for (const group of groups) group.bodies.add(body);
    this.#makeRoom(body);
    return {
      arrived: (bytes) => {
        if (body.isOver) return false;
        body.bytes += bytes;
        for (const group of groups) group.bytes += bytes;
        this.#makeRoom(body);
        return !body.isOver;
      },
      end: () => {
        this.#end(body);
        if (place !== null && this.#byAddress.get(place)?.bodies.size === 0) this.#byAddress.delete(place);
        if (this.#byConnector.get(connectorId)?.bodies.size === 0) this.#byConnector.delete(connectorId);
      },
    };
  }

  #makeRoom({ groups }: Body): void {
    const nowMs = this.#clock.monotonicMs();
    for (const group of groups) {
      for (let slowest = group.surplus(nowMs); slowest !== null; slowest = group.surplus(nowMs)) {
        this.#end(slowest);
        slowest.onDropped(lagOf(slowest, nowMs) > SLOW_MS ? 'slow' : 'busy');
      }
    }
  }

  #end(body: Body): void {
    if (body.isOver) return;
    body.isOver = true;
    for (const group of body.groups) {
      group.bodies.delete(body);
      group.bytes -= body.bytes;
    }
  }
}

function groupOf(groups: Map<string, Group>, name: string, bodiesMax: number, bytesMax: number): Group {
  let group = groups.get(name);
  if (group === undefined) groups.set(name, (group = new Group(bodiesMax, bytesMax)));
  return group;
}
