import { setImmediate as turn } from 'node:timers/promises';
import { silentLog } from '../../../core/ports/log.ts';
import { MemoryStorage } from '../../../core/memory/memory-storage.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { Keys } from '../../../core/ports/keys.ts';
import { createPersistentSubscriptions } from '../../../core/persistent/persistent.ts';
import { createSecurity } from '../../../core/security/security.ts';
import { streamHasher } from '../../../core/base/stream-hash.ts';
import { createGrpc } from '../../../handlers/grpc.ts';
import type { Grpc } from '../../../handlers/grpc.ts';
import { expressionOf } from '../../../handlers/streams/expression.ts';
import { nodeKeys } from '../../../infra/node-keys.ts';
import { contextOf } from '../../support/app-context.ts';
import { RECORDED_ENDPOINT } from '../../support/exchanges.ts';
import { FakeNode } from '../../support/fake-node.ts';
import { installFiles, unpackSet } from '../../support/fixtures.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { openTestStore } from '../../support/test-store.ts';
import { Replay } from './replay.ts';
import type { ClientCall, Replayed, World } from './replay.ts';
import type { Exchange } from './exchange.ts';

const FIRST_CALL_MS = Date.UTC(2026, 10, 21, 9, 11, 37);
/** How far a call's time is moved on until it is clear that nothing more comes. */
const PATIENCE_MS = 12_000;
const STEP_MS = 100;

/** Derivations of keys that are under way run on threads of their own: nothing is quiet while there are some. */
function countedKeys(): { readonly keys: Keys; readonly busy: () => number } {
  let busy = 0;
  const keys = new Proxy(nodeKeys, {
    get(target, name: keyof Keys) {
      const member = target[name] as unknown;
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        // What a password costs otherwise would be most of what the replay costs.
        if (name === 'scrypt') args[2] = { ...(args[2] as Parameters<Keys['scrypt']>[2]), n: 16 };
        const result = (member as (...all: unknown[]) => unknown).apply(target, args);
        if (!(result instanceof Promise)) return result;
        busy++;
        return result.finally(() => {
          busy--;
        });
      };
    },
  });
  return { keys, busy: () => busy };
}

/** How calls reach the handlers. */
export interface Way {
  open(path: string, metadata: Readonly<Record<string, string>>, deadlineMs: number | null): ClientCall;
  plays(exchange: Exchange): boolean;
  /** What is on its way needs time that no test moves on. */
  pause?(): Promise<void>;
  close(): Promise<void>;
}

/** All recorded calls, in their order, at the handlers over a store on the directory that they were recorded on. */
export async function replayed(wayTo: (grpc: Grpc) => Promise<Way> | Way): Promise<Replayed> {
  const storage = new MemoryStorage();
  await installFiles(storage, unpackSet('orders-1-before'));
  const clock = new ManualClock(FIRST_CALL_MS, 'microtask');
  const opened = await openTestStore({
    storage,
    clock,
    appendBytesMax: 200_000,
    scavenge: { nodeEndpoint: RECORDED_ENDPOINT },
  });
  try {
    const { keys, busy } = countedKeys();
    const parts = { store: opened.store, clock, ids: new SeededIds(7), log: silentLog, meter: silentMeter };
    const security = createSecurity(
      { ...parts, keys },
      { passwordFormat: 'strong', allowAnonymousStreamAccess: false, adminPassword: 'unused', opsPassword: 'unused' },
    );
    await security.start();
    const subscriptions = createPersistentSubscriptions({
      ...parts,
      writes: opened.store,
      matcherOf: (expression) => expressionOf(expression, parts),
      hasher: streamHasher,
    });
    subscriptions.start();
    const way = await wayTo(
      createGrpc(
        contextOf({
          ...parts,
          scavenger: opened.scavenger,
          security,
          subscriptions,
          node: new FakeNode(),
          options: { appendBytesMax: 200_000 },
        }),
      ),
    );
    const settle = async (): Promise<void> => {
      for (let i = 0; i < 20 || busy() > 0; i++) await turn();
    };
    const world: World = {
      store: opened.store,
      open: (path, metadata, deadlineMs) => way.open(path, metadata, deadlineMs),
      async until(holds) {
        for (let waited = 0; waited <= PATIENCE_MS; waited += STEP_MS) {
          for (let i = 0; i < 20 || busy() > 0; i++) {
            if (holds()) return true;
            await turn();
          }
          await way.pause?.();
          if (holds()) return true;
          await clock.advance(STEP_MS);
        }
        return holds();
      },
      async quiet() {
        for (let waited = 0; waited < 500; waited += STEP_MS) {
          await settle();
          await way.pause?.();
          await clock.advance(STEP_MS);
        }
      },
      at: (timeMs) => {
        if (timeMs > clock.nowMs()) clock.setNow(timeMs);
      },
      plays: (exchange) => way.plays(exchange),
    };
    try {
      return await new Replay(world).run();
    } finally {
      await way.close();
    }
  } finally {
    await opened.close();
  }
}
