import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { openStore } from '../../../local/embedded/index.ts';
import { memory, type Model, project, type RecordedEvent } from '../../../local/project/index.ts';
import { Random } from '../../support/random.ts';
import { loadPostgres, type TestPool } from './postgres.ts';

/**
 * A reader that is killed at any moment, again and again, while events come: what it has made must be what a model is
 * that was built at once. The order of events shows in it, and each that is missing or there twice.
 */

/** What is made of a stream, in SQL that both databases know. */
export interface Total {
  readonly stream: string;
  readonly count: number;
  readonly last: number;
  readonly chain: number;
}

export const CHAIN_MODULUS = 1_000_003;
export const CREATE = 'CREATE TABLE totals (stream text PRIMARY KEY, count int, last int, chain int)';
const SELECT = 'SELECT stream, count, last, chain FROM totals ORDER BY stream';
/** Of all events, in one order. */
export const ALL = '(all)';
const COUNT = `SELECT count FROM totals WHERE stream = '${ALL}'`;

/** Adds to a total; `first` and `second` are how its parameters stream and version are written. */
export function upsert(first: string, second: string): string {
  return `INSERT INTO totals (stream, count, last, chain) VALUES (${first}, 1, ${second}, ${second}) ON CONFLICT (stream) DO UPDATE SET count = totals.count + 1, last = excluded.last, chain = (totals.chain * 31 + excluded.last + 1) % ${CHAIN_MODULUS}`;
}

function added(totals: Map<string, Total>, stream: string, version: number): void {
  const before = totals.get(stream);
  totals.set(stream, {
    stream,
    count: (before?.count ?? 0) + 1,
    last: version,
    chain: before === undefined ? version : (before.chain * 31 + version + 1) % CHAIN_MODULUS,
  });
}

/** The database of a run, as this process and the reader know it. */
interface Database {
  /** What the reader opens it by. */
  readonly words: readonly string[];
  totals(): Promise<Total[]>;
  /** Events that the model holds. */
  count(): Promise<number>;
  close(): Promise<void>;
}

async function sqliteIn(folder: string): Promise<Database> {
  const file = path.join(folder, 'models.db');
  const db = new DatabaseSync(file, { timeout: 10_000 });
  return {
    words: ['sqlite', file],
    totals: async () =>
      db
        .prepare(SELECT)
        .all()
        .map((row) => ({ ...row }) as unknown as Total),
    count: async () =>
      db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'totals'").get() === undefined
        ? 0
        : Number(db.prepare(COUNT).get()?.['count'] ?? 0),
    close: async () => db.close(),
  };
}

async function postgresServer(): Promise<Database> {
  const { startPostgres, poolOf } = await loadPostgres();
  const server = await startPostgres();
  const pool: TestPool = poolOf(server.host);
  return {
    words: ['postgres', server.host],
    totals: async () => (await pool.query(SELECT)).rows as unknown as Total[],
    count: async () => {
      const [there] = (await pool.query("SELECT to_regclass('totals') IS NOT NULL AS yes")).rows;
      return there!['yes'] === true ? Number((await pool.query(COUNT)).rows[0]?.['count'] ?? 0) : 0;
    },
    close: async () => {
      await pool.end();
      await server.stop();
    },
  };
}

const READER = fileURLToPath(new URL('kill-reader.ts', import.meta.url));
const EVENTS_A_ROUND = 25;
/** Of what a reader commits together. */
export const BATCH_EVENTS = 4;

interface KillsOptions {
  readonly kind: 'sqlite' | 'postgres';
  readonly rounds: number;
  readonly seed: number;
}

/** How often the reader was killed before it had come to the end, and what both models are. */
export interface KillsReport {
  readonly kills: number;
  readonly midway: number;
  /** Rounds behind which the model held more than before. */
  readonly grew: number;
  readonly made: readonly Total[];
  readonly anew: readonly Total[];
}

export async function runKills({ kind, rounds, seed }: KillsOptions): Promise<KillsReport> {
  const random = new Random(seed);
  const folder = await mkdtemp(path.join(tmpdir(), 'skua-kills-'));
  const bucket = path.join(folder, 'bucket');
  const store = await openStore({ bucket, chunkBytes: 1_048_576 });
  const database = await (kind === 'sqlite' ? sqliteIn(folder) : postgresServer());
  let kills = 0;
  let midway = 0;
  let grew = 0;
  let held = 0;
  try {
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < EVENTS_A_ROUND; i++)
        await store.append(`s-${random.int(0, 4)}`, { type: 'Counted', data: { i } });
      // By what it has done, so that a slow machine kills where a fast one does; it goes on until the signal comes.
      // Every other one stands still there, behind its first batch, so that it is killed midway on any machine.
      const stands = round % 2 === 0;
      const events = random.int(stands ? BATCH_EVENTS + 1 : 0, EVENTS_A_ROUND);
      const reader = readerOf(bucket, database.words, random.int(0, 1_000_000), events, stands);
      await reader.reached;
      for (let turns = random.int(0, 40); turns > 0; turns--) await new Promise(setImmediate);
      reader.kill();
      const wasDone = await reader.ended;
      kills++;
      if (!wasDone) midway++;
      const now = await database.count();
      if (now > held) grew++;
      held = now;
    }
    const last = readerOf(bucket, database.words, 0, 0, false);
    if (!(await last.ended)) throw new Error('The last reader has not come to the end.');
    const totals = memory(() => new Map<string, Total>());
    await project(store, {
      name: 'anew',
      store: totals as Model<Map<string, Total>>,
      on: {
        Counted: (state, { stream, version }: RecordedEvent) => {
          added(state, stream, version);
          added(state, ALL, version);
        },
      },
    }).catchUp();
    const anew = [...totals.state.values()].sort((a, b) => (a.stream < b.stream ? -1 : 1));
    const made = [...(await database.totals())].sort((a, b) => (a.stream < b.stream ? -1 : 1));
    return { kills, midway, grew, made, anew };
  } finally {
    await store.close();
    await database.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * `reached` resolves when it has begun so many events, with which it may stand still, or has ended; `ended` tells
 * whether it had come to the end by itself.
 */
function readerOf(bucket: string, words: readonly string[], seed: number, events: number, stands: boolean) {
  const child = spawn(process.execPath, [READER, bucket, ...words, String(seed), String(stands ? events : 0)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  let begin = () => {};
  const reached = new Promise<void>((resolve) => {
    begin = resolve;
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    if (said.split('.').length > events && said.includes('begin')) begin();
  });
  const ended = new Promise<boolean>((resolve, reject) => {
    child.on('error', reject).on('close', (code) => {
      begin();
      if (code !== 0 && code !== null) reject(new Error(`The reader has ended with ${code}: ${said}`));
      else resolve(said.includes('done'));
    });
  });
  ended.catch(() => {});
  return { reached, ended, kill: () => child.kill('SIGKILL') };
}
