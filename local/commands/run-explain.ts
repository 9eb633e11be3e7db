import * as path from 'node:path';
import type { ObjectLocation } from '../../core/ports/object-store.ts';
import type { Explanation } from '../../core/scavenge/api.ts';
import { coloursFor, counted, countText, EXIT, line, shown, tableLines } from '../../infra/runtime/io.ts';
import type { Column, ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { UsageError } from '../../infra/runtime/failure.ts';
import { NodeClient } from '../cli/node-client.ts';
import { bytesText } from '../cli/progress.ts';
import { ScavengeClient } from '../scavenge/scavenge-client.ts';
import type { ExplanationDocument } from '../../handlers/documents/scavenging.ts';
import type { Document } from '../scavenge/scavenge-client.ts';
import { directoryWays, momentOf, NODE_WAYS } from '../scavenge/resumed-point.ts';
import type { Ways } from '../scavenge/resumed-point.ts';
import type { explainOptions } from './options-command.ts';

export async function runExplain(
  { options, given, positionals }: Input<typeof explainOptions>,
  io: Io,
): Promise<ExitCode> {
  const { db, index, storage, json } = options;
  if (db !== null && given.has('node'))
    throw new UsageError('--node asks a running node and --db reads a directory: give one of them.');
  if (storage !== null && given.has('node'))
    throw new UsageError('--node asks a running node and --storage reads object storage: give one of them.');
  if (db !== null && storage !== null)
    throw new UsageError('Name a data directory with --db or object storage with --storage, not both.');
  if (db !== null && given.has('ca'))
    throw new UsageError('--ca is for running nodes: a directory has no certificate.');
  if (storage !== null && given.has('ca')) throw new UsageError('--ca is for running nodes, not for object storage.');
  if (db === null && given.has('index')) throw new UsageError('--index needs --db.');
  const stream = positionals[0]!;
  const keepsDeletedData = options['keep-data-of-deleted-streams'];
  if (db === null && storage === null && keepsDeletedData)
    throw new UsageError(
      '--keep-data-of-deleted-streams goes with --db or --storage: a running node uses its own option of that name.',
    );
  const place =
    db === null && storage === null
      ? null
      : await (await import('../on-objects/open-for-inspection.ts')).objectsAt(db, options);
  const unfit = (['s3-endpoint', 's3-region'] as const).find((name) => given.has(name));
  if (place === null && unfit !== undefined) throw new UsageError(`--${unfit} needs --storage.`);
  const explanation =
    place !== null
      ? await ofObjects(place, stream, keepsDeletedData, io)
      : db === null
        ? await new ScavengeClient(NodeClient.of(options, io.env)).explain(stream)
        : await ofDirectory(path.resolve(db), index, stream, keepsDeletedData, io);
  if (json) line(io.stdout, explanation.text);
  else showExplanation(explanation.value, db === null || place !== null ? NODE_WAYS : directoryWays(db), io);
  return EXIT.ok;
}

/** TOMBSTONE as the value of a member, which is a number of 64 bits to others. */
const TOMBSTONE_VALUE = /(?<=: )9007199254740991\b/g;

async function ofDirectory(
  directory: string,
  index: string | null,
  stream: string,
  keepsDeletedData: boolean,
  io: Io,
): Promise<Document<ExplanationDocument>> {
  const { openDirectory } = await import('../store/open-directory.ts');
  const opened = await openDirectory(directory, index, { repairHistory: false, keepsDeletedData }, io, {
    appendsNothing: true,
    looksOnly: true,
  });
  try {
    return await documentOf(await opened.open.scavenger.explain(stream));
  } finally {
    await opened.close();
  }
}

/** In this process, beside the processes that use the store; nothing in the store is changed. */
async function ofObjects(
  place: ObjectLocation,
  stream: string,
  keepsDeletedData: boolean,
  io: Io,
): Promise<Document<ExplanationDocument>> {
  const [{ withObjectsAt }, { newTemporaryStorage }, { openObjectStore }, { DryRuns }] = await Promise.all([
    import('../on-objects/open-for-inspection.ts'),
    import('../../infra/runtime/temporary-storage.ts'),
    import('../../core/shared-log/shared-log.ts'),
    import('../../core/shared-log/dry-runs/dry-runs.ts'),
  ]);
  return withObjectsAt(place, io, async (world) => {
    const instance = await openObjectStore(world);
    const dryRuns = new DryRuns({ world, options: {}, config: { keepsDeletedData }, instance, newTemporaryStorage });
    try {
      return await documentOf(await dryRuns.explain(stream));
    } finally {
      await dryRuns.close();
      await instance.close();
    }
  });
}

async function documentOf(explanation: Explanation): Promise<Document<ExplanationDocument>> {
  const { explanationDocument } = await import('../../handlers/scavenging/scavenge-routes.ts');
  const value = explanationDocument(explanation);
  return { value, text: JSON.stringify(value, null, 2).replaceAll(TOMBSTONE_VALUE, '9223372036854775807') };
}

const REMOVED: readonly Column[] = [
  { title: 'events', align: 'left' },
  { title: 'count', align: 'right' },
  { title: 'size', align: 'right' },
  { title: 'because of', align: 'left' },
];
const KEPT: readonly Column[] = [
  { title: 'events', align: 'left' },
  { title: 'count', align: 'right' },
  { title: 'because', align: 'left' },
];

/** What would go from a stream, by which rule, and what would stay and why. */
export function showExplanation(
  {
    stream,
    lastEventNumber,
    metadata,
    ignored = [],
    rules,
    removed,
    kept,
    marked,
    redacted,
    waiting,
  }: ExplanationDocument,
  ways: Ways,
  io: Io,
): void {
  const { bold, red, green, dim, yellow } = coloursFor(io.stdout, io.env);
  const out = (text = '') => line(io.stdout, text);
  out(`${bold(shown(stream))}: ${lastText(lastEventNumber)}`);
  const unreadable = ignored.find(({ key }) => key === null);
  out(
    `metadata: ${metadata !== null ? JSON.stringify(metadata) : unreadable !== undefined ? shown(unreadable.value) : dim('none')}`,
  );
  for (const { key, value, why } of ignored)
    out(`${yellow('ignored:')}  ${key === null ? 'all of it' : shown(`${key} ${value}`)}: ${shown(why)}`);
  out(
    `rules:    ${rules.length === 0 ? dim('none, so nothing is ever removed') : shown(rules.map(ruleText).join(', '))}`,
  );
  const bytes = removed.reduce((sum, each) => sum + each.bytes, 0);
  const count = removed.reduce((sum, each) => sum + each.count, 0);
  out();
  if (removed.length === 0)
    out(green(`A scavenge would remove ${redacted === undefined && marked === undefined ? 'nothing' : 'no event'}.`));
  else {
    out(red(`A scavenge would remove ${counted(count, 'event')} (${bytesText(bytes)} of records):`));
    for (const text of tableLines(
      REMOVED,
      removed.map((each) => [rangeText(each), countText(each.count), bytesText(each.bytes), each.rule]),
    ))
      out(`  ${text}`);
  }
  if (marked !== undefined)
    out(red(`It would empty ${counted(marked.count, 'redacted event')} (${bytesText(marked.bytes)}).`));
  if (redacted !== undefined)
    out(
      red(
        `It would empty the last event, ${numberText(redacted.number)}, of its data and metadata (${bytesText(redacted.bytes)}), keeping only its number, id and type.`,
      ),
    );
  if (kept.length > 0) {
    out(
      `${counted(
        kept.reduce((sum, each) => sum + each.count, 0),
        'event',
      )} would stay:`,
    );
    for (const text of tableLines(
      KEPT,
      kept.map((each) => [rangeText(each), countText(each.count), each.why]),
    ))
      out(`  ${text}`);
  }
  if (waiting === undefined) return;
  const moment = momentOf(waiting);
  out();
  out(
    `${yellow('The next start is not this scavenge')}: it ${waiting.why === 'unfinished' ? `resumes the one of ${moment}, up to that time` : `goes to the scavenge point of ${moment}`}, unless you start it with \`${ways.start} --fresh\`.`,
  );
  const { leaves } = waiting;
  if (leaves.length === 0)
    out(removed.length === 0 ? 'It removes nothing of this stream either.' : 'It removes the same of this stream.');
  else {
    out(
      `Of the ${counted(count, 'event')}, it leaves ${countText(leaves.reduce((sum, each) => sum + each.count, 0))} to another scavenge:`,
    );
    for (const text of tableLines(
      REMOVED,
      leaves.map((each) => [rangeText(each), countText(each.count), bytesText(each.bytes), each.rule]),
    ))
      out(`  ${text}`);
  }
}

function lastText(number: number): string {
  if (number < 0) return 'no events';
  return number >= Number.MAX_SAFE_INTEGER ? 'deleted for ever' : `last event ${numberText(number)}`;
}

function ruleText({ rule, value }: Explanation['rules'][number]): string {
  return value === true ? rule : `${rule} ${typeof value === 'number' ? numberText(value) : String(value)}`;
}

function rangeText({ from, to }: { readonly from: number; readonly to: number }): string {
  // The tombstone's number says nothing to a reader.
  if (from >= Number.MAX_SAFE_INTEGER) return 'the last';
  return from === to ? numberText(from) : `${numberText(from)} to ${numberText(to)}`;
}

/** The number of a tombstone is beyond what JavaScript counts exactly. */
function numberText(number: number): string {
  return number >= Number.MAX_SAFE_INTEGER ? '9223372036854775807' : String(number);
}
