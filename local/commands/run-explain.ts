import * as path from 'node:path';
import { TOMBSTONE } from '../../core/log/records.ts';
import type { Explanation } from '../../core/scavenge/api.ts';
import type { Input } from '../cli/command.ts';
import type { ExitCode, Io } from '../cli/io.ts';
import { EXIT, line } from '../cli/io.ts';
import { nodeOf } from '../cli/node-option.ts';
import { UsageError } from '../cli/usage-error.ts';
import { NodeClient } from '../node-client.ts';
import { ScavengeClient } from '../scavenge/client.ts';
import type { Document } from '../scavenge/client.ts';
import { openDirectory } from '../scavenge/directory.ts';
import { showExplanation } from '../scavenge/show-explanation.ts';
import type { explainOptions } from './explain.ts';

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

async function ofDirectory(directory: string, index: string | null, stream: string, io: Io): Promise<Document<Explanation>> {
  const opened = await openDirectory(directory, index, { repairHistory: false }, io);
  try {
    const value = await opened.open.scavenger.explain(stream);
    return { value, text: JSON.stringify(value, null, 2).replaceAll(new RegExp(`(?<=: )${TOMBSTONE}\\b`, 'g'), '9223372036854775807') };
  } finally {
    await opened.close();
  }
}
