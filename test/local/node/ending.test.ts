import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { startNode } from '../../../local/node/node.ts';
import type { RunningNode } from '../../../local/node/node.ts';
import { NodeLines } from '../backup/node-kit.ts';
import { load } from '../config/support.ts';

/** What was opened and what was closed, in the order in which that was done, and what fails of it. */
const seen = vi.hoisted(() => {
  const all = {
    opened: [] as string[],
    closed: [] as string[],
    opens: (name: string): boolean => name !== all.failsToOpen,
    failsToOpen: '',
    failsToClose: [] as readonly string[],
    /** Opens what `open` opens, unless that is to fail. */
    async watch<T>(name: string, open: () => T | Promise<T>): Promise<T> {
      if (name === all.failsToOpen) throw new Error(`${name} was not opened`);
      const part = await open();
      all.opened.push(name);
      return part;
    },
    async end(step: string, close: () => unknown): Promise<unknown> {
      all.closed.push(step);
      const result = await close();
      if (all.failsToClose.includes(step)) throw new Error(`${step} was not closed`);
      return result;
    },
    /** `part`, whose end by this method is noted as `step`. */
    noting<T extends object>(part: T, method: keyof T, step: string): T {
      const close = part[method] as (...args: unknown[]) => unknown;
      part[method] = ((...args: unknown[]) => all.end(step, () => close.apply(part, args))) as T[keyof T];
      return part;
    },
  };
  return all;
});

vi.mock('../../../local/tracing/tracing.ts', async (original) => {
  const { startTracing } = await original<typeof import('../../../local/tracing/tracing.ts')>();
  return {
    startTracing: (...args: Parameters<typeof startTracing>) =>
      seen.watch('tracing', async () => seen.noting((await startTracing(...args))!, 'close', 'tracing')),
  };
});
vi.mock('../../../local/node/listen.ts', async (original) => {
  const { listen } = await original<typeof import('../../../local/node/listen.ts')>();
  return {
    listen: (...args: Parameters<typeof listen>) =>
      seen.watch('server', async () =>
        seen.noting(seen.noting(await listen(...args), 'stop', 'server'), 'interrupt', 'calls'),
      ),
  };
});
vi.mock('../../../local/store/open-node.ts', async (original) => {
  const { openNode, ...rest } = await original<typeof import('../../../local/store/open-node.ts')>();
  return {
    ...rest,
    openNode: (...args: Parameters<typeof openNode>) =>
      seen.watch('node', async () => seen.noting(await openNode(...args), 'close', 'node')),
  };
});
vi.mock('../../../local/node/security.ts', async (original) => {
  const { startSecurity, ...rest } = await original<typeof import('../../../local/node/security.ts')>();
  return {
    ...rest,
    startSecurity: (...args: Parameters<typeof startSecurity>) => seen.watch('security', () => startSecurity(...args)),
  };
});
vi.mock('../../../infra/anchors/anchor-locations.ts', async (original) => {
  const { openAnchorLocation, ...rest } = await original<typeof import('../../../infra/anchors/anchor-locations.ts')>();
  return {
    ...rest,
    openAnchorLocation: (...args: Parameters<typeof openAnchorLocation>) =>
      seen.watch('anchors', async () => seen.noting(await openAnchorLocation(...args), 'close', 'anchors')),
  };
});
vi.mock('../../../local/audit/audit-trail.ts', async (original) => {
  const { AuditTrail, ...rest } = await original<typeof import('../../../local/audit/audit-trail.ts')>();
  class Watched extends AuditTrail {
    override openStream(...args: Parameters<typeof AuditTrail.prototype.openStream>): void {
      if (!seen.opens('audit stream')) throw new Error('audit stream was not opened');
      super.openStream(...args);
      seen.opened.push('audit stream');
    }
    override async closeStream(): Promise<void> {
      // The file is closed with what is left of the stream.
      if (seen.closed.at(-1) === 'audit') await super.closeStream();
      else await seen.end('audit stream', () => super.closeStream());
    }
    override async close(): Promise<void> {
      await seen.end('audit', () => super.close());
    }
  }
  return { ...rest, AuditTrail: Watched };
});
vi.mock('../../../infra/quickjs/quickjs-sandbox.ts', async (original) => {
  const { QuickJsSandbox } = await original<typeof import('../../../infra/quickjs/quickjs-sandbox.ts')>();
  class Watched extends QuickJsSandbox {
    constructor(...args: ConstructorParameters<typeof QuickJsSandbox>) {
      super(...args);
      seen.opened.push('sandbox');
    }
    override async close(): Promise<void> {
      await seen.end('sandbox', () => super.close());
    }
  }
  return { QuickJsSandbox: Watched };
});
vi.mock('../../../local/webhook/open-webhooks.ts', async (original) => {
  const { openWebhooks, ...rest } = await original<typeof import('../../../local/webhook/open-webhooks.ts')>();
  return {
    ...rest,
    openWebhooks: async (...args: Parameters<typeof openWebhooks>) => {
      const webhooks = await openWebhooks(...args);
      // As one that fails half-way: its sandbox is open.
      return seen.watch('webhooks', () => seen.noting(webhooks, 'drain', 'drain'));
    },
  };
});
vi.mock('../../../local/auto-scavenge/open-auto-scavenge.ts', async (original) => {
  const { openAutoScavenge, ...rest } =
    await original<typeof import('../../../local/auto-scavenge/open-auto-scavenge.ts')>();
  return {
    ...rest,
    openAutoScavenge: (...args: Parameters<typeof openAutoScavenge>) =>
      seen.watch('auto-scavenge', () => openAutoScavenge(...args)),
  };
});
vi.mock('../../../local/backup/node-backups.ts', async (original) => {
  const { openBackups, ...rest } = await original<typeof import('../../../local/backup/node-backups.ts')>();
  return {
    ...rest,
    openBackups: (...args: Parameters<typeof openBackups>) =>
      seen.watch('backups', async () =>
        seen.noting(seen.noting(await openBackups(...args), Symbol.asyncDispose, 'repository'), 'end', 'backup'),
      ),
  };
});
vi.mock('../../../local/persistent/open-subscriptions.ts', async (original) => {
  const { openSubscriptions } = await original<typeof import('../../../local/persistent/open-subscriptions.ts')>();
  return {
    openSubscriptions: (...args: Parameters<typeof openSubscriptions>) => {
      if (!seen.opens('subscriptions')) throw new Error('subscriptions was not opened');
      seen.opened.push('subscriptions');
      return seen.noting(openSubscriptions(...args), Symbol.asyncDispose, 'subscriptions');
    },
  };
});
vi.mock('../../../local/metrics/stats-collector.ts', async (original) => {
  const { StatsCollector } = await original<typeof import('../../../local/metrics/stats-collector.ts')>();
  return {
    StatsCollector: class extends StatsCollector {
      override collect(): Promise<void> {
        return seen.watch('statistics', () => super.collect());
      }
    },
  };
});
vi.mock('../../../local/metrics/process-metrics.ts', async (original) => {
  const { watchProcess, ...rest } = await original<typeof import('../../../local/metrics/process-metrics.ts')>();
  return {
    ...rest,
    watchProcess: (...args: Parameters<typeof watchProcess>) => seen.noting(watchProcess(...args), 'close', 'process'),
  };
});
vi.mock('../../../infra/objects/open-objects.ts', async (original) => {
  const { openObjects, ...rest } = await original<typeof import('../../../infra/objects/open-objects.ts')>();
  return {
    ...rest,
    openObjects: (...args: Parameters<typeof openObjects>) =>
      seen.watch('objects', async () => seen.noting(await openObjects(...args), 'close', 'objects')),
  };
});
vi.mock('../../../infra/cron-schedule.ts', async (original) => {
  const { createSchedule } = await original<typeof import('../../../infra/cron-schedule.ts')>();
  return {
    createSchedule: () => {
      if (!seen.opens('schedule')) throw new Error('schedule was not opened');
      return createSchedule();
    },
  };
});

let folder: string;
let heldBefore: readonly string[];
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skua-ending-'));
  heldBefore = held();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(() => Object.assign(seen, { opened: [], closed: [], failsToOpen: '', failsToClose: [] }));

/** Kinds of what the process waits for: sockets, threads, files; timers are the runner's, too. */
function held(): readonly string[] {
  return process
    .getActiveResourcesInfo()
    .filter((kind) => kind !== 'Timeout')
    .sort();
}

function inFolder(name: string): string {
  return path.join(folder, name);
}

/** By default a node with every part that one of its own can have. */
function start(...words: string[]): Promise<RunningNode> {
  const own =
    words.length > 0 ? words : ['--db', inFolder('db'), '--proof-chain', '--proof-anchor', inFolder('anchors')];
  const config = load([
    '--node-port',
    '0',
    '--disable-tls',
    '--chunk-size',
    '131072',
    '--stream-existence-filter-size',
    '10000',
    '--audit-log',
    inFolder('audit.log'),
    '--audit-stream',
    ...own,
  ]);
  return startNode({ config, log: new NodeLines(), env: { OTEL_TRACES_EXPORTER: 'console' } });
}

/** In the order of their opening. */
const PARTS = [
  'tracing',
  'server',
  'node',
  'security',
  'anchors',
  'audit stream',
  'sandbox',
  'webhooks',
  'auto-scavenge',
  'backups',
  'subscriptions',
  'statistics',
];

/** What is closed, in this order, and what was opened for it. */
const STEPS: readonly (readonly [string, string | null])[] = [
  ['subscriptions', 'subscriptions'],
  ['backup', 'backups'],
  ['repository', 'backups'],
  ['drain', 'webhooks'],
  ['server', 'server'],
  ['sandbox', 'sandbox'],
  ['audit stream', 'audit stream'],
  ['anchors', 'anchors'],
  ['node', 'node'],
  ['audit', 'tracing'],
  ['tracing', 'tracing'],
  ['process', null],
];
const ALL = STEPS.map(([step]) => step);

describe('a start that fails', () => {
  test.each(PARTS.filter((part) => part !== 'sandbox'))('closes what was opened before it: %s', async (part) => {
    const before = PARTS.slice(0, PARTS.indexOf(part));
    seen.failsToOpen = part;
    // Each start finds the directory that the one before has let go of.
    await expect(start()).rejects.toThrow(`${part} was not opened`);
    expect(seen.opened).toEqual(before);
    expect(seen.closed).toEqual(
      STEPS.filter(([, opened]) => opened === null || before.includes(opened)).map(([step]) => step),
    );
    await expect.poll(held).toEqual(heldBefore);
  });

  test('tells why, also where what it has opened can not be closed', async () => {
    seen.failsToOpen = 'statistics';
    seen.failsToClose = ['node', 'server'];
    await expect(start()).rejects.toThrow('statistics was not opened');
    expect(seen.closed).toEqual(ALL);
  });

  test.each([
    [
      'a member of a cluster',
      'statistics',
      () => [
        '--storage',
        inFolder('log'),
        '--db',
        inFolder('copy'),
        '--cluster-size',
        '3',
        '--cluster-secret',
        'between-us',
      ],
    ],
    ['a node on objects', 'statistics', () => ['--storage', inFolder('objects')]],
    ['a node on objects that has opened no more than these', 'schedule', () => ['--storage', inFolder('objects')]],
  ])('closes the objects of %s', async (_, part, words) => {
    seen.failsToOpen = part;
    await expect(start(...words())).rejects.toThrow(`${part} was not opened`);
    expect(seen.closed.filter((step) => ['server', 'objects', 'audit', 'tracing', 'process'].includes(step))).toEqual([
      'server',
      'objects',
      'audit',
      'tracing',
      'process',
    ]);
  });
});

describe('a stop', () => {
  test('closes what serves before what is served from', async () => {
    await (await start()).stop();
    expect(seen.closed).toEqual(ALL);
  });

  test('closes the repository of backups while requests may still wait for it', async () => {
    const node = await start('--mem-db', '--backup-repository', inFolder('backups'));
    await expect.poll(() => seen.opened).toContain('objects');
    await node.stop();
    expect(seen.closed.slice(0, 5)).toEqual(['subscriptions', 'backup', 'repository', 'objects', 'drain']);
  });

  // That of anchors is closed whatever it says.
  test.each(ALL.filter((step) => step !== 'anchors'))(
    'closes all the rest where one can not be closed, and tells that: %s',
    async (step) => {
      const node = await start();
      seen.failsToClose = [step];
      await expect(node.stop()).rejects.toThrow(`${step} was not closed`);
      expect(seen.closed).toEqual(ALL);
    },
  );

  test('tells the first error', async () => {
    const node = await start();
    seen.failsToClose = ['process', 'sandbox', 'server', 'drain'];
    await expect(node.stop()).rejects.toThrow('drain was not closed');
    expect(seen.closed).toEqual(ALL);
  });
});

test('a store that is opened again was closed as at a stop, while server, audit and traces go on', async () => {
  const node = await start();
  const { url } = node;
  await node.reopen();
  const lasting = ['server', 'audit', 'tracing', 'process'];
  expect(seen.closed).toEqual(
    ALL.map((step) => (step === 'server' ? 'calls' : step)).filter((step) => !lasting.includes(step)),
  );
  expect([node.url, (await fetch(`${url}/health/live`)).status]).toEqual([url, 204]);
  seen.closed = [];
  await node.stop();
  expect(seen.closed).toEqual(ALL);
});
