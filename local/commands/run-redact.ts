import type { RedactBody, RedactionDocument } from '../../handlers/documents/redaction.ts';
import { shown } from '../../infra/runtime/config/sources.ts';
import { CommandError, UsageError } from '../../infra/runtime/failure.ts';
import { coloursFor, counted, EXIT, line, tableLines } from '../../infra/runtime/io.ts';
import type { Column, ExitCode, Io, Output } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { expectStatus, NodeClient } from '../cli/node-client.ts';
import { bytesText } from '../cli/progress.ts';
import { isConfirmed } from '../cli/question.ts';
import type { redactOptions } from './options-command.ts';

type Given = Input<typeof redactOptions>;

/** Shows what would go, asks, and redacts. */
export async function runRedact({ options, positionals }: Given, io: Io): Promise<ExitCode> {
  const { preview, yes, json } = options;
  const body = bodyOf(positionals[0]!, options);
  const node = NodeClient.of(options, io.env);
  const found = await ask(node, body, true);
  if (preview) {
    if (json) line(io.stdout, JSON.stringify(found, null, 2));
    else {
      show(found, io.stdout, io);
      line(io.stdout, 'Nothing was changed.');
    }
    return EXIT.ok;
  }
  const isNew = found.events.some(({ wasRedacted }) => !wasRedacted);
  if (isNew && !yes) {
    show(found, json ? io.stderr : io.stdout, io);
    if (!(await isConfirmed('Redact them, which cannot be undone? Type yes: ', io)))
      throw new CommandError(
        'not_confirmed',
        'Nothing was changed. Answer yes, or give --yes in a script.',
        EXIT.refused,
      );
  }
  const done = await ask(node, body, false);
  if (json) line(io.stdout, JSON.stringify(done, null, 2));
  else {
    if (yes || !isNew) show(done, io.stdout, io);
    line(io.stdout, shown(done.remains));
    if (done.position !== null) line(io.stdout, 'Start a scavenge with `skua scavenge start`.');
  }
  return EXIT.ok;
}

function bodyOf(stream: string, { event, id, reason, metadata }: Given['options']): RedactBody {
  if (event.length > 0 === id.length > 0)
    throw new UsageError('Name the events either by number, with --event N, or by id, with --id UUID.');
  if (reason === null)
    throw new UsageError('--reason is missing: say why, in words that do not hold what is to be removed.');
  const events = event.map((text) => {
    if (!/^\d{1,15}$/.test(text)) throw new UsageError(`--event must be the number of an event, not '${text}'.`);
    return Number(text);
  });
  return {
    stream,
    ...(events.length > 0 ? { events } : { ids: id }),
    reason,
    ...(metadata.length > 0 && { metadata }),
  };
}

async function ask(node: NodeClient, body: RedactBody, isPreview: boolean): Promise<RedactionDocument> {
  const response = await node.call('POST', `/admin/redact${isPreview ? '?preview=true' : ''}`, {
    headers: { accept: 'application/json', 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return JSON.parse(await expectStatus(response, [200], 'asked to redact events')) as RedactionDocument;
}

const COLUMNS: readonly Column[] = [
  { title: 'event', align: 'right' },
  { title: 'type', align: 'left' },
  { title: 'id', align: 'left' },
  { title: 'data', align: 'right' },
  { title: 'metadata', align: 'right' },
  { title: '', align: 'left' },
];

function show({ stream, events }: RedactionDocument, output: Output, io: Io): void {
  const { bold } = coloursFor(output, io.env);
  line(output, `${bold(shown(stream))}: ${counted(events.length, 'event')}`);
  const rows = events.map(({ number, type, id, dataBytes, metadataBytes, wasRedacted }) => [
    String(number),
    shown(type),
    id,
    bytesText(dataBytes),
    bytesText(metadataBytes),
    wasRedacted ? 'redacted before' : '',
  ]);
  for (const text of tableLines(COLUMNS, rows)) line(output, `  ${text}`);
}
