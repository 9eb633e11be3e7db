import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startHelper, startNode } from '../child.ts';
import type { Server } from '../child.ts';
import { EVENT_JSON } from '../events.ts';
import { median, row } from '../figure.ts';
import type { Figure, Row, Settings } from '../figure.ts';
import type { AttackName, AttackRequest, AttackResult } from '../processes/edge-attacks.ts';
import type { NeighboursRequest, NeighboursResult } from '../processes/edge-neighbours.ts';

const ATTACK_MS = 10_000;
const ATTACK_MS_SMOKE = 300;
/** A window without an attack is this part of one with. */
const QUIET_PART = 0.3;
/** Windows before the first attack; the last of them tells how large the node is at rest. */
const WARM_UPS = 3;
/** Between an attack and the next window: what was under way ends. */
const SETTLE_MS = 1_000;
/** In a smoke run a twentieth is under way at once. */
const SMOKE_SHARE = 1 / 20;
const RSS_EVERY_MS = 250;

/**
 * What others may wait at most for a small request, in milliseconds, and which part of their appends is left to them.
 */
const USUAL = { p99Ms: 100, longestMs: 500, appends: 0.5 };
/** While requests that are refused come as fast as the line carries them. */
const LINE_RATE = { p99Ms: 250, longestMs: 1_000, appends: 0.25 };
/**
 * How far the resident size may rise: by whoever has no login, and by a known caller, who may fill the budgets of
 * replies and of uploads, too (256 MiB each).
 */
const STRANGER_MIB = 300;
const KNOWN_MIB = STRANGER_MIB + 2 * 256;

const ADMIN = basic('admin', 'changeit');
/** Whom the attacks must not trouble: another user than the one who attacks, and no administrator. */
const USER = { loginName: 'kim', fullName: 'Kim', groups: ['pickers'], password: 'a-password-of-some-length' };
const STREAMS = { appendTo: 'neighbours', readFrom: 'pages' };
const PAGE_EVENTS = 100;

interface Attack {
  readonly what: string;
  readonly name: AttackName;
  readonly inFlight: number;
  readonly isKnown?: boolean;
  /** It is refused, and comes again at once. */
  readonly isLineRate?: boolean;
}

const ATTACKS: readonly Attack[] = [
  { what: 'GET /openapi.json pipelined over 4 connections', name: 'documents', inFlight: 4, isLineRate: true },
  {
    what: '20 000 silent calls of BatchAppend without a login',
    name: 'silent calls',
    inFlight: 20_000,
    isLineRate: true,
  },
  { what: '20 000 silent calls of BatchAppend with a login', name: 'silent calls', inFlight: 20_000, isKnown: true },
  { what: '416 beginnings of 700 kB of Append without a login', name: 'beginnings', inFlight: 416, isLineRate: true },
  { what: 'connections of HTTP/2 that break', name: 'broken frames', inFlight: 64, isLineRate: true },
  { what: 'upgrades behind a request', name: 'upgrades', inFlight: 64, isLineRate: true },
  { what: 'connections that are reset at once', name: 'resets', inFlight: 64, isLineRate: true },
  { what: '8 messages of 524 000 empty records', name: 'empty records', inFlight: 8, isKnown: true },
  { what: '2 batches of 3.8 MB under 60 arrays', name: 'deep batches', inFlight: 2, isKnown: true },
  { what: '2 readers of an event of 3.8 MB under 60 arrays', name: 'deep events', inFlight: 2, isKnown: true },
  { what: '20 uploads of 29 MB', name: 'uploads', inFlight: 20, isKnown: true },
];

export const edgeAttacks: Figure = {
  name: 'edge-attacks',
  isLong: true,
  how: `For each attack a new node with users, which three windows without an attack warm up. Then in turns a window without (${(ATTACK_MS * QUIET_PART) / 1_000} s) and one of the attack (${ATTACK_MS / 1_000} s), each with a probe of \`GET /ping\` every 5 ms, which does not wait for its answers, somebody with a login who makes one append over HTTP after another, and who reads a page of ${PAGE_EVENTS} events over gRPC after another; attackers are a process of their own, with an address of their own where the system has one. What ends is begun again at once. Probes: of a window the 99th percentile and the longest; one that fails counts as the whole window. Appends: a second, beside the window without. Resident size: the largest of a window above the largest before the first attack.`,
  async run(settings) {
    const attackers = startHelper(['test/bench/processes/edge-attacks.ts']);
    const neighbours = startHelper(['test/bench/processes/edge-neighbours.ts']);
    try {
      const rows: Row[] = [];
      for (const [i, attack] of ATTACKS.filter(({ what }) => what.includes(settings.only)).entries()) {
        settings.say(attack.what);
        const node = await startNode(join(settings.folder, `edge-attacks-${i}`), '--disable-tls');
        try {
          rows.push(...(await measure(settings, node, attack, attackers, neighbours)));
        } finally {
          await node.stop();
        }
      }
      return rows;
    } finally {
      await attackers.stop();
      await neighbours.stop();
    }
  },
};

type Helper = ReturnType<typeof startHelper>;
interface Window extends NeighboursResult {
  readonly rssMiB: number;
}

async function measure(
  settings: Settings,
  node: Server,
  { what, name, inFlight, isKnown = false, isLineRate = false }: Attack,
  attackers: Helper,
  neighbours: Helper,
): Promise<Row[]> {
  const ms = settings.isSmoke ? ATTACK_MS_SMOKE : ATTACK_MS * settings.dataShare;
  const window = async (length: number): Promise<Window> => {
    const asked: NeighboursRequest = {
      port: node.port,
      ms: length,
      authorization: basic(USER.loginName, USER.password),
      ...STREAMS,
    };
    const { result, rssMiB } = await besideResidentSize(node, neighbours.ask<NeighboursResult>(asked));
    if (node.process.exitCode !== null || node.process.signalCode !== null)
      throw new Error(`The node has ended: ${what}.`);
    return { ...result, rssMiB };
  };
  await prepare(node);
  for (let i = settings.isSmoke ? 1 : WARM_UPS; i > 1; i--) await window(ms * QUIET_PART);
  const rest = await window(ms * QUIET_PART);
  const without: Window[] = [];
  const beside: Window[] = [];
  const endings: Record<string, number> = {};
  let attackerCpu = 0;
  for (let i = 0; i < settings.windows; i++) {
    without.push(await window(ms * QUIET_PART));
    const asked: AttackRequest = {
      port: node.port,
      attack: name,
      inFlight: settings.isSmoke ? Math.ceil(inFlight * SMOKE_SHARE) : inFlight,
      ms,
      authorization: isKnown ? ADMIN : null,
    };
    const [attacked, seen] = await Promise.all([attackers.ask<AttackResult>(asked), window(ms)]);
    beside.push(seen);
    attackerCpu = Math.max(attackerCpu, attacked.cpu);
    add(endings, attacked.endings);
    if (!settings.isSmoke) await sleep(SETTLE_MS);
  }
  const { p99Ms, longestMs, appends } = isLineRate ? LINE_RATE : USUAL;
  const same = (value: number): number[] => beside.map(() => value);
  const usual = (value: (window: Window) => number): number => median(without.map(value));
  const appendsFailed: Record<string, number> = {};
  const pagesFailed: Record<string, number> = {};
  for (const one of beside) {
    add(appendsFailed, one.appendsFailed);
    add(pagesFailed, one.pagesFailed);
  }
  const seconds = (settings.windows * ms) / 1_000;
  return [
    row(
      `p99 of a probe beside ${what}`,
      'ms',
      { limit: same(p99Ms), ours: beside.map((one) => one.p99Ms) },
      { kind: 'at most', value: 1 },
      [
        `without ${usual((one) => one.p99Ms).toFixed(1)} ms; ${sum(beside.map(({ probesFailed }) => probesFailed))} of ${sum(beside.map(({ probes }) => probes))} probes failed`,
        `endings of what was begun: ${told(endings, seconds)}; the attackers took ${(100 * attackerCpu).toFixed(0)} % of a core`,
      ],
    ),
    row(
      `longest probe beside ${what}`,
      'ms',
      { limit: same(longestMs), ours: beside.map((one) => one.longestMs) },
      { kind: 'at most', value: 1 },
      [`without ${usual((one) => one.longestMs).toFixed(1)} ms`],
    ),
    row(
      `appends beside ${what}`,
      'appends/s',
      { limit: without.map((one) => one.appendsPerSecond), ours: beside.map((one) => one.appendsPerSecond) },
      { kind: 'at least', value: appends },
      [
        `appends refused: ${told(appendsFailed, seconds)}`,
        `pages read ${median(beside.map((one) => one.pagesPerSecond)).toFixed(1)} a second (without ${usual((one) => one.pagesPerSecond).toFixed(1)}), refused: ${told(pagesFailed, seconds)}`,
      ],
    ),
    // One that has fallen has nothing above rest; ratios want a number above zero.
    row(
      `resident size above rest, ${what}`,
      'MiB',
      {
        limit: same(isKnown ? KNOWN_MIB : STRANGER_MIB),
        ours: beside.map(({ rssMiB }) => Math.max(0.01, rssMiB - rest.rssMiB)),
      },
      { kind: 'at most', value: 1 },
      [
        `at rest ${rest.rssMiB.toFixed(0)} MiB; of the last window without the attack ${(without.at(-1)!.rssMiB - rest.rssMiB).toFixed(0)} MiB above it`,
      ],
    ),
  ];
}

/** A user, and a page of events for it. */
async function prepare({ port }: Server): Promise<void> {
  const post = async (path: string, type: string, body: string): Promise<void> => {
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { authorization: ADMIN, 'content-type': type },
      body,
    });
    if (reply.status !== 201) throw new Error(`${path} was answered with ${reply.status} ${await reply.text()}`);
  };
  await post('/users', 'application/json', JSON.stringify(USER));
  await post(
    `/streams/${STREAMS.readFrom}`,
    'application/vnd.eventstore.events+json',
    `[${Array.from({ length: PAGE_EVENTS }, () => `{"eventId":"${randomUUID()}","eventType":"OrderPlaced","data":${EVENT_JSON}}`).join(',')}]`,
  );
}

/** The largest resident size of the node until this is there. */
async function besideResidentSize<T>(
  { process: { pid } }: Server,
  until: Promise<T>,
): Promise<{ result: T; rssMiB: number }> {
  const over = new AbortController();
  let rssMiB = 0;
  const watching = (async () => {
    while (!over.signal.aborted) {
      const { stdout } = await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(pid)]).catch(() => ({
        stdout: '0',
      }));
      rssMiB = Math.max(rssMiB, Number(stdout) / 1_024);
      await sleep(RSS_EVERY_MS, undefined, { signal: over.signal }).catch(() => {});
    }
  })();
  const result = await until.finally(() => over.abort());
  await watching;
  return { result, rssMiB };
}

function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

function add(to: Record<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [key, count] of Object.entries(more)) to[key] = (to[key] ?? 0) + count;
}

/** How often a second each came. */
function told(counts: Readonly<Record<string, number>>, seconds: number): string {
  return (
    Object.entries(counts)
      .map(([key, count]) => `${key} ${(count / seconds).toFixed(1)} a second`)
      .join(', ') || 'none'
  );
}
