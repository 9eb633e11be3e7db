import type { AttributeIndexesDocument, AttributeSettingBody } from '../../handlers/documents/attribute-indexes.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { UsageError } from '../../infra/runtime/failure.ts';
import { countText, EXIT, line, tableLines } from '../../infra/runtime/io.ts';
import type { Column, ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { expectStatus, NodeClient } from '../cli/node-client.ts';
import { bytesText, Progress } from '../cli/progress.ts';
import { listenForInterrupt } from '../cli/signals.ts';
import type { indexesSetOptions, indexesStatusOptions } from './options-command.ts';

/** How often --watch asks. */
const LOOK_MS = 1_000;

export async function runIndexesStatus(
  { options }: Input<typeof indexesStatusOptions>,
  io: Io,
  lookMs = LOOK_MS,
): Promise<ExitCode> {
  const node = NodeClient.of(options, io.env);
  const found = options.watch ? await watched(node, io, lookMs) : await ask(node, null);
  show(found, options.json, io);
  return EXIT.ok;
}

export async function runIndexesSet({ options }: Input<typeof indexesSetOptions>, io: Io): Promise<ExitCode> {
  const { names, correlations, tags } = options;
  if (names === null && correlations === null && tags === null)
    throw new UsageError('Say what to change: --names, --correlations or --tags, each on or off.');
  const wanted: AttributeSettingBody = {
    ...(names !== null && { names: names === 'on' }),
    ...(correlations !== null && { correlations: correlations === 'on' }),
    ...(tags !== null && { tags: tags === 'on' }),
  };
  show(await ask(NodeClient.of(options, io.env), wanted), options.json, io);
  return EXIT.ok;
}

async function ask(node: NodeClient, wanted: AttributeSettingBody | null): Promise<AttributeIndexesDocument> {
  const response = await node.call(wanted === null ? 'GET' : 'POST', '/admin/indexes', {
    headers: { accept: 'application/json', ...(wanted !== null && { 'content-type': 'application/json' }) },
    ...(wanted !== null && { body: JSON.stringify(wanted) }),
  });
  return JSON.parse(
    await expectStatus(response, [200], wanted === null ? 'asked for its indexes' : 'asked to change its indexes'),
  ) as AttributeIndexesDocument;
}

/** Shows how far the indexes are until all are built, or Ctrl+C. */
async function watched(node: NodeClient, io: Io, lookMs: number): Promise<AttributeIndexesDocument> {
  const interrupt = listenForInterrupt('', io);
  const progress = new Progress({
    io,
    onLine: (text) => line(io.stderr, text),
  });
  try {
    for (;;) {
      const found = await ask(node, null);
      const building = found.indexes.filter(({ state }) => state === 'building');
      if (building.length === 0 || interrupt.signal.aborted) return found;
      progress.update({
        label: `building ${building.map(({ name }) => name).join(', ')}`,
        bytesDone: Math.min(...building.map(({ coveredTo }) => coveredTo)),
        bytesTotal: building[0]!.logEnd,
      });
      await systemClock.sleep(lookMs, interrupt.signal);
    }
  } finally {
    progress.clear();
    interrupt.release();
  }
}

const COLUMNS: readonly Column[] = [
  { title: 'index', align: 'left' },
  { title: 'state', align: 'left' },
  { title: 'covered', align: 'right' },
  { title: 'entries', align: 'right' },
  { title: 'on disk', align: 'right' },
];

function show(found: AttributeIndexesDocument, json: boolean, io: Io): void {
  if (json) {
    line(io.stdout, JSON.stringify(found, null, 2));
    return;
  }
  const { setting, indexes } = found;
  if (indexes.length === 0) {
    const on = Object.entries(setting).map(([name, isOn]) => `${name} ${isOn ? 'on' : 'off'}`);
    line(io.stdout, `${on.join(', ')}. The node that was asked keeps no indexes of its own.`);
    return;
  }
  const rows = indexes.map(({ name, state, coveredTo, logEnd, entries, tableBytes }) => [
    name,
    state,
    state === 'off' ? '' : `${logEnd === 0 ? 100 : Math.floor((coveredTo / logEnd) * 100)} %`,
    state === 'off' ? '' : countText(entries),
    state === 'off' ? '' : bytesText(tableBytes),
  ]);
  for (const text of tableLines(COLUMNS, rows)) line(io.stdout, text);
  for (const { name, error } of indexes) if (error !== undefined) line(io.stdout, `${name} does not get on: ${error}`);
}
