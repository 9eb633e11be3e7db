import * as path from 'node:path';
import type { Explanation } from '../../core/scavenge/api.ts';
import { coloursFor, counted, countText, EXIT, line, tableLines } from '../cli/io.ts';
import type { Column, ExitCode, Io } from '../cli/io.ts';
import type { Input } from '../cli/command.ts';
import { nodeOf } from '../cli/command.ts';
import { UsageError } from '../cli/failure.ts';
import { NodeClient } from '../cli/node-client.ts';
import { bytesText } from '../cli/progress.ts';
import { ScavengeClient } from '../scavenge/client.ts';
import type { Document } from '../scavenge/client.ts';
import { openDirectory } from '../store/open-node.ts';
import type { explainOptions } from './options.ts';

export async function runExplain({ options, given, positionals }: Input<typeof explainOptions>, io: Io): Promise<ExitCode> {
  const { db, index, node, json } = options;
  if (db !== null && given.has('node')) throw new UsageError('--node asks a running node and --db looks into a directory: give one of them.');
  if (db === null && given.has('index')) throw new UsageError('--index belongs to --db.');
  const stream = positionals[0]!;
  const explanation = db === null ? await new ScavengeClient(new NodeClient(nodeOf(node, io), io.env)).explain(stream) : await ofDirectory(path.resolve(db), index, stream, io);
  if (json) line(io.stdout, explanation.text);
  else showExplanation(explanation.value, io);
  return EXIT.ok;
}

/** TOMBSTONE as the value of a member, which is a number of 64 bits to others. */
const TOMBSTONE_VALUE = /(?<=: )9007199254740991\b/g;

async function ofDirectory(directory: string, index: string | null, stream: string, io: Io): Promise<Document<Explanation>> {
  const opened = await openDirectory(directory, index, { repairHistory: false }, io);
  try {
    const value = await opened.open.scavenger.explain(stream);
    return { value, text: JSON.stringify(value, null, 2).replaceAll(TOMBSTONE_VALUE, '9223372036854775807') };
  } finally {
    await opened.close();
  }
}

const REMOVED: readonly Column[] = [
  { title: 'events', align: 'left' }, { title: 'count', align: 'right' }, { title: 'size', align: 'right' }, { title: 'because of', align: 'left' },
];
const KEPT: readonly Column[] = [{ title: 'events', align: 'left' }, { title: 'count', align: 'right' }, { title: 'because', align: 'left' }];

/** What would go from a stream, by which rule, and what would stay and why. */
export function showExplanation({ stream, lastEventNumber, metadata, rules, removed, kept }: Explanation, io: Io): void {
  const { bold, red, green, dim } = coloursFor(io.stdout, io.env);
  const out = (text = '') => line(io.stdout, text);
  out(`${bold(stream)}: ${lastEventNumber < 0 ? 'no events' : `last event ${numberText(lastEventNumber)}`}`);
  out(`metadata: ${metadata === null ? dim('none') : JSON.stringify(metadata)}`);
  out(`rules:    ${rules.length === 0 ? dim('none, so nothing is ever removed') : rules.map(ruleText).join(', ')}`);
  const bytes = removed.reduce((sum, each) => sum + each.bytes, 0);
  const count = removed.reduce((sum, each) => sum + each.count, 0);
  out();
  if (removed.length === 0) out(green('A scavenge would remove nothing.'));
  else {
    out(red(`A scavenge would remove ${counted(count, 'event')} (${bytesText(bytes)}):`));
    for (const text of tableLines(REMOVED, removed.map((each) => [rangeText(each), countText(each.count), bytesText(each.bytes), each.rule]))) out(`  ${text}`);
  }
  if (kept.length === 0) return;
  out(`${counted(kept.reduce((sum, each) => sum + each.count, 0), 'event')} would stay:`);
  for (const text of tableLines(KEPT, kept.map((each) => [rangeText(each), countText(each.count), each.why]))) out(`  ${text}`);
}

function ruleText({ rule, value }: Explanation['rules'][number]): string {
  return value === true ? rule : `${rule} ${typeof value === 'number' ? numberText(value) : String(value)}`;
}

function rangeText({ from, to }: { readonly from: number; readonly to: number }): string {
  return from === to ? numberText(from) : `${numberText(from)} to ${numberText(to)}`;
}

/** The number of a tombstone is beyond what JavaScript counts exactly. */
function numberText(number: number): string {
  return number >= Number.MAX_SAFE_INTEGER ? '9223372036854775807' : String(number);
}
