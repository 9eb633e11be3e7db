/// <reference lib="esnext.disposable" preserve="true" />
import type { LogEntry, NewEvent, ScavengeResult, Store } from '../embedded/api.ts';

/**
 * What `skua/testing` offers: a node for tests, in the process of the tests. It is the node that `skua start` runs,
 * with its server, its handlers, its users and its store; only where that costs time it is set up otherwise (see
 * `TestNodeOptions`).
 */

/** How a test node is to be. Everything may be left out. */
export interface TestNodeOptions {
  /**
   * The users who may log in. Left out, no login is needed: everybody who reaches the port may do everything. `true`,
   * or a list, switches logins and access lists on: then there are `admin` (of the group `$admins`) and `ops` (of
   * `$ops`), both with the password `changeit` unless the list says otherwise, and those of the list. Passwords are
   * derived by PBKDF2, which takes a hundredth of the time of what nodes do by default.
   */
  readonly users?: boolean | readonly TestUser[];
  /**
   * Connections are encrypted, with a self-signed certificate for `localhost`, `127.0.0.1` and `::1` that all nodes of
   * a process share. There are users then, as for `users: true`. Default false.
   */
  readonly tls?: boolean;
  /**
   * What the store holds when the node is handed out, and again after each `reset()`: events by the name of their
   * stream, in the order of the object, or a function that writes them.
   */
  readonly seed?: Seed;
  /**
   * Where the events are: in memory, or in a folder of their own below that of the system for temporary files, written
   * as a real node does it. The folder is removed by `stop()`, and at the latest when the process ends. Default
   * `memory`.
   */
  readonly storage?: 'memory' | 'folder';
  /**
   * Further options of the node by the names that its documentation has (`skua start --help`, local/config/OPTIONS.md),
   * such as `{ MaxAppendSize: '1MiB' }`. Those that the other members decide, such as NodePort, Db and Insecure, are
   * refused. Environment variables and configuration files are not looked at.
   */
  readonly options?: Readonly<Record<string, string | number | boolean>>;
  /** Gets what the node logs. Left out, nothing is written anywhere. An error that it throws is ignored. */
  readonly onLog?: (line: LogEntry) => void;
}

export interface TestUser {
  readonly name: string;
  readonly password: string;
  /** Default: none. Those of `admin` and `ops` are fixed. */
  readonly groups?: readonly string[];
  readonly fullName?: string;
}

/** Events by stream, or a function that writes them; what it returns is awaited. */
export type Seed = Readonly<Record<string, readonly NewEvent[]>> | ((node: TestNode) => unknown);

/** A span of time: milliseconds, or the sum of what is given. */
export type Duration =
  | number
  | {
      readonly days?: number;
      readonly hours?: number;
      readonly minutes?: number;
      readonly seconds?: number;
      readonly milliseconds?: number;
    };

/**
 * A node that runs in this process. It keeps no process alive: a test that forgets `stop()` ends all the same. From
 * Node.js 24 on, or where TypeScript compiles it, `await using node = await startTestNode()` stops it at the end of the
 * block.
 *
 * What its methods reject with has a stable `code`: `bad_option` for an argument that makes no sense, `store_closed`
 * after `stop()`.
 */
export interface TestNode extends AsyncDisposable {
  /**
   * Where it listens, such as `http://127.0.0.1:40123`; a free port of the loopback address. It stays the same until
   * `stop()`.
   */
  readonly url: string;
  /**
   * For `EventStoreDBClient.connectionString` and other gRPC clients, of either generation: the scheme is `esdb`, which
   * newer ones take with a warning. Where there are users it logs in as `admin`;
   * mind that the clients for Node.js send names and passwords over TLS only, so that they need `tls` where they need
   * `users`. With TLS it names a file with the certificate, which is there until `stop()`.
   */
  readonly connectionString: string;
  /** The same with the scheme `kurrentdb`, for `KurrentDBClient.connectionString` and other clients that know it. */
  readonly kurrentConnectionString: string;
  /** With `tls` the certificate of the node in PEM, which is its own authority; else null. */
  readonly certificate: string | null;
  /** The folder with the files of the node; null in memory. */
  readonly folder: string | null;
  /**
   * The store of the node, as `skua/embedded` has it, without access lists: what is written here is there for clients
   * at once, and the other way round. It stays the same object over `reset()`. To close it is to let go of it until the
   * next `reset()`; the node goes on.
   */
  readonly store: Store;
  /** The time of what is stored: that of the machine, and what `advanceTime` has added. */
  now(): Date;
  /**
   * Moves the time of what is stored on: events with an age limit (`$maxAge`) expire, groups of consumers (persistent
   * subscriptions) deliver again what was not acknowledged in time, and what is written from now on has the later time.
   * Connections, logins, certificates and the arrival of webhooks keep the machine's time. Resolves when what was
   * waiting for that time has had its turn. Time never goes back, not even by `reset()`.
   */
  advanceTime(by: Duration): Promise<void>;
  /**
   * Runs a scavenge from its beginning to its end. The chunk that is being written is completed by it, so that events
   * which were just written are looked at as well. Rejects as `store.scavenge` does.
   */
  scavenge(): Promise<ScavengeOutcome>;
  /**
   * Empties the node: no streams, no groups, no users but those of the options, and what `seed` says. Address,
   * certificate and open connections stay; subscriptions and calls that are under way end with an error, since their
   * store is gone. Requests that come meanwhile are refused as by a node that starts (503, UNAVAILABLE), which clients
   * repeat.
   */
  reset(): Promise<void>;
  /** Ends requests, node and store, closes all connections, and removes the folder. May be called more than once. */
  stop(): Promise<void>;
}

export interface ScavengeOutcome extends ScavengeResult {
  /**
   * The events that are gone from the log now, in its order; those of streams whose names begin with `$` among them. At
   * most REMOVED_MAX of them.
   */
  readonly removed: readonly RemovedEvent[];
  /** How many they are. */
  readonly removedCount: number;
}

export interface RemovedEvent {
  readonly stream: string;
  readonly version: number;
  readonly type: string;
  readonly id: string;
}
