import { writeFile } from 'node:fs/promises';
import * as path from 'node:path';
import { SkuaError } from '../../core/base/errors.ts';
import { clearInterval, setInterval } from '../../infra/timers.ts';
import { logLevelOf } from '../../infra/runtime/config/options.ts';
import { startNode } from '../node/node.ts';
import type { RunningNode } from '../node/node.ts';
import type { NodeWorld } from '../node/node-world.ts';
import type { DevCertificate } from '../tls/dev-certificate.ts';
import type { Duration, ScavengeOutcome, TestNode } from './api.ts';
import { MovedClock } from './test-clock.ts';
import type { TemporaryFolder } from '../../infra/fs/file-removal.ts';
import { createFolder, removeFolder } from './folders.ts';
import { testLog } from './test-log.ts';
import { configOf, millisecondsOf } from './test-options.ts';
import type { Asked } from './test-options.ts';
import { NodeStore, storeOf } from './node-store.ts';
import { inventory, removedSince } from './removed.ts';
import { writeSeed } from './seed.ts';
import { background } from '../../core/base/background.ts';

/** Tests wait for the end of a node, and a client that still wants an answer then has gone. */
const STOP_GRACE_MS = 1_000;
/**
 * A repeated request is recognised among so many events: with the store's own number a node would begin with 5 MB for
 * them.
 */
const RECENT_IDS = 8_192;
const ZERO_AHEAD_BYTES = 65_536;
/** File of the certificate, in the folder of the node. */
const CERTIFICATE = 'certificate.pem';

/** One for all nodes of the process: it takes longer to make than ten nodes. Made again in time before it expires. */
let shared: { readonly made: Promise<DevCertificate>; readonly madeMs: number } | null = null;
const CERTIFICATE_MS_MAX = 86_400_000;

async function sharedCertificate(nowMs: number): Promise<DevCertificate> {
  if (shared === null || nowMs - shared.madeMs > CERTIFICATE_MS_MAX) {
    const made = import('../tls/dev-certificate.ts').then(({ devCertificate }) => devCertificate(nowMs));
    const mine = (shared = { made, madeMs: nowMs });
    made.catch(() => {
      if (shared === mine) shared = null;
    });
  }
  return shared.made;
}

/** Starts a node, and hands it out when it has its users and its seed. */
export async function openTestNode(asked: Asked): Promise<TestNode> {
  const folder = asked.isInMemory && !asked.isSecure ? null : await createFolder();
  const clock = new MovedClock();
  const world: NodeWorld = {
    dataClock: clock,
    machineClock: new MovedClock(),
    keepsProcess: false,
    stopGraceMs: STOP_GRACE_MS,
    recentIds: RECENT_IDS,
    zeroAheadBytes: ZERO_AHEAD_BYTES,
    collector: null,
    devCertificate: sharedCertificate,
  };
  return keepingProcess(async () => {
    let running: RunningNode | null = null;
    try {
      const config = configOf(asked, folder === null ? null : path.join(folder.path, 'db'));
      const certificate = asked.isSecure ? (await sharedCertificate(world.machineClock.nowMs())).certificate : null;
      // Clients take it from a file only.
      if (certificate !== null) await writeFile(path.join(folder!.path, CERTIFICATE), certificate);
      running = await startNode({
        config,
        env: {},
        log: testLog(logLevelOf(config.values.LogLevel), asked.options.onLog),
        world,
      });
      const node = new ProcessNode({ asked, running, clock, folder, certificate });
      await node.fill();
      return node;
    } catch (error) {
      await running?.stop();
      if (folder !== null) await removeFolder(folder);
      throw error;
    }
  });
}

interface Parts {
  readonly asked: Asked;
  readonly running: RunningNode;
  readonly clock: MovedClock;
  /** Of the node's files, and that of its certificate. */
  readonly folder: TemporaryFolder | null;
  readonly certificate: string | null;
}

class ProcessNode implements TestNode {
  readonly #parts: Parts;
  readonly url: string;
  readonly connectionString: string;
  readonly kurrentConnectionString: string;
  readonly store: NodeStore;
  /** What is done with the node as a whole is done one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  #stopping: Promise<void> | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.url = parts.running.url;
    this.store = new NodeStore(storeOf(parts.running));
    const address = addressOf(parts);
    this.connectionString = `esdb://${address}`;
    this.kurrentConnectionString = `kurrentdb://${address}`;
    // As for any node: a user with the right to do so has asked for its end.
    background(parts.running.shutdownAsked.then(() => this.stop()));
  }

  get certificate(): string | null {
    return this.#parts.certificate;
  }
  get folder(): string | null {
    return this.#parts.asked.isInMemory ? null : this.#parts.folder!.path;
  }
  now(): Date {
    return new Date(this.#parts.clock.nowMs());
  }

  /** What the options say about users and events. */
  async fill(): Promise<void> {
    const {
      asked: {
        users,
        options: { seed },
      },
      running,
    } = this.#parts;
    for (const { name, password, groups = [], fullName = null } of users) {
      await running.users!.create({ loginName: name, password, groups, fullName });
    }
    if (typeof seed === 'function') await seed(this);
    else if (seed !== undefined) await writeSeed(this.store, seed);
  }

  async advanceTime(by: Duration): Promise<void> {
    const ms = millisecondsOf(by);
    this.#refuseStopped();
    await keepingProcess(() => this.#parts.clock.advance(ms));
  }

  scavenge(): Promise<ScavengeOutcome> {
    return this.#inTurn(async () => {
      const { running } = this.#parts;
      const { store } = running.open;
      const before = await inventory(store);
      // Not that of tests, which they may have closed.
      const result = await storeOf(running).scavenge();
      return { ...result, ...(await removedSince(store, before)) };
    });
  }

  reset(): Promise<void> {
    return this.#inTurn(async () => {
      const { running } = this.#parts;
      await running.reopen(async () => {
        if (this.folder !== null) await this.#parts.folder!.removeInside('db');
      });
      this.store.become(storeOf(running));
      await this.fill();
    });
  }

  stop(): Promise<void> {
    this.#stopping ??= keepingProcess(async () => {
      await this.#turn;
      const { running, folder } = this.#parts;
      await running.stop();
      if (folder !== null) await removeFolder(folder);
    });
    return this.#stopping;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#refuseStopped();
    const done = this.#turn.then(() => keepingProcess(work));
    this.#turn = done.catch(() => {});
    return done;
  }

  #refuseStopped(): void {
    if (this.#stopping !== null)
      throw new SkuaError('store_closed', 'The test node was stopped: start another one with startTestNode.');
  }
}

/** A connection string behind its scheme. */
function addressOf({ running: { url }, asked: { hasUsers, isSecure, adminPassword }, folder }: Parts): string {
  const login = hasUsers ? `admin:${encodeURIComponent(adminPassword)}@` : '';
  const { host, port } = new URL(url);
  // TLS asks for a server by its name, and Node.js warns a client that asks for an address.
  return isSecure
    ? `${login}localhost:${port}?tls=true&tlsCaFile=${encodeURIComponent(path.join(folder!.path, CERTIFICATE))}`
    : `${login}${host}?tls=false`;
}

/** Nothing of a test node keeps the process alive, but for work that a test waits for. */
async function keepingProcess<T>(work: () => Promise<T>): Promise<T> {
  const hold = setInterval(() => {}, HOLD_MS);
  try {
    return await work();
  } finally {
    clearInterval(hold);
  }
}

const HOLD_MS = 2_147_483_647;
