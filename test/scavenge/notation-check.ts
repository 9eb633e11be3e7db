import { expect } from 'vitest';
import { STATUS_ACTIVE, STATUS_ARCHIVED, STATUS_SPENT } from '../../core/ports/scavenge-state.ts';
import { parseExpected, parseLabels } from './notation.ts';
import type { RecordSpec } from './notation.ts';
import { World } from './notation-world.ts';
import type { Run, RunOptions, WorldOptions } from './notation-world.ts';

/** What is stored about an original stream: a status, or `gone`. */
export type RowState = 'active' | 'archived' | 'spent' | 'gone';

/** What must be there after a run. */
export interface Expectation {
  /** Records left per chunk. */
  readonly left?: string;
  /** Records that the index has, without chunks; default: those of `left` that have a number. */
  readonly idx?: string;
  /** Of several entries with one number, only that of the earliest record counts, as for readers. */
  readonly idxAsRead?: boolean;
  /** Weight of each chunk. */
  readonly weights?: readonly number[];
  /** Version of the file of each chunk. */
  readonly versions?: readonly number[];
  /** Status of the rows of original streams, and whether metastreams (`$$a`) have one. */
  readonly rows?: Readonly<Record<string, RowState | 'kept'>>;
  /** Discard points: the first number to keep; of metastreams too. */
  readonly dp?: Readonly<Record<string, number>>;
  readonly mdp?: Readonly<Record<string, number>>;
}

/** A row of the tables: a log, one run for its last scavenge point, and what is left. */
export interface Row extends Expectation, WorldOptions {
  readonly row: number;
  /** What tells this case of the row from the others. */
  readonly when?: string;
  readonly log: string;
  /** Part of the text that the run fails with. */
  readonly fails?: string;
  readonly unsafe?: boolean;
  readonly merging?: boolean;
  readonly run?: RunOptions;
}

export function nameOf(row: Row): string {
  return `row ${row.row}${row.when === undefined ? '' : ` (${row.when})`}: ${row.log}`;
}

export async function checkRow(row: Row): Promise<{ world: World; run: Run }> {
  const world = await World.create(row.log, row);
  const run = await world.run({ unsafe: row.unsafe ?? false, merging: row.merging ?? false, ...row.run });
  if (row.fails === undefined) expect(run.last).toMatchObject({ result: 'Success', error: null });
  else {
    expect(run.last.result).toBe('Errored');
    expect(run.last.error).toContain(row.fails);
  }
  await expectWorld(world, row);
  return { world, run };
}

export async function expectWorld(world: World, expected: Expectation): Promise<void> {
  if (expected.left !== undefined) {
    const left = parseExpected(expected.left, world.log.labels);
    expect(await world.recordsLeft(), 'records left per chunk').toEqual(left);
    if (expected.idx === undefined) await expectIndex(world, indexedOf(world, left), false);
  }
  if (expected.idx !== undefined) await expectIndex(world, parseLabels(expected.idx), expected.idxAsRead ?? false);
  if (expected.versions !== undefined)
    expect(
      (await world.files()).map((file) => file.version),
      'versions of the files',
    ).toEqual(expected.versions);
  expectState(world, expected);
}

async function expectIndex(world: World, labels: readonly string[], asRead: boolean): Promise<void> {
  let records = await world.indexLeft();
  const key = (record: RecordSpec & { indexNumber: number }): string => `${record.stream}/${record.indexNumber}`;
  if (asRead) records = records.filter((record, i) => records.findIndex((other) => key(other) === key(record)) === i);
  expect(
    records.map((record) => record.label),
    'entries left in the index',
  ).toEqual(labels);
}

/** The records among those left that have a number. */
function indexedOf(world: World, left: readonly (readonly string[])[]): string[] {
  return left.flatMap((labels, chunk) =>
    labels.filter((label) =>
      world.log.chunks[chunk]!.records.some((record) => record.label === label && record.indexNumber >= 0),
    ),
  );
}

const STATES: Record<number, RowState> = {
  [STATUS_ACTIVE]: 'active',
  [STATUS_ARCHIVED]: 'archived',
  [STATUS_SPENT]: 'spent',
};

function expectState(world: World, { weights, rows, dp, mdp }: Expectation): void {
  const state = world.state();
  try {
    if (weights !== undefined)
      expect(
        weights.map((_, chunk) => state.weight(chunk, chunk)),
        'weights',
      ).toEqual(weights);
    for (const [stream, status] of Object.entries(rows ?? {})) {
      const { hi, lo } = world.hash(stream);
      if (stream.startsWith('$$'))
        expect(state.metastream(stream, hi, lo) === undefined ? 'gone' : 'kept', `row of ${stream}`).toBe(status);
      else {
        const data = state.original(stream, hi, lo);
        expect(data === undefined ? 'gone' : STATES[data.status], `row of ${stream}`).toBe(status);
      }
    }
    for (const [stream, point] of Object.entries(dp ?? {})) {
      const { hi, lo } = world.hash(stream);
      const data = stream.startsWith('$$') ? state.metastream(stream, hi, lo) : state.original(stream, hi, lo);
      expect(data?.discardPoint, `discard point of ${stream}`).toBe(point);
    }
    for (const [stream, point] of Object.entries(mdp ?? {})) {
      const { hi, lo } = world.hash(stream);
      expect(state.original(stream, hi, lo)?.maybeDiscardPoint, `maybe-discard point of ${stream}`).toBe(point);
    }
  } finally {
    state.close();
  }
}
