import type { PageDocument } from '../../handlers/documents/streams.ts';
import { UsageError } from '../../infra/runtime/failure.ts';
import { counted, EXIT, line, tableLines } from '../../infra/runtime/io.ts';
import type { Column, ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { expectStatus, NodeClient } from '../cli/node-client.ts';
import { listenForInterrupt } from '../cli/signals.ts';
import { pathOf, queryOf } from './found-events.ts';
import type { streamsOptions } from './read-options.ts';

/** Events of a page, whose data is not sent. */
const PAGE_EVENTS = 1_000;

interface Found {
  readonly stream: string;
  /** Of its newest event that matches. */
  readonly number: number;
  readonly type: string;
  readonly written: string;
}

const COLUMNS: readonly Column[] = [
  { title: 'stream', align: 'left' },
  { title: 'newest match', align: 'right' },
  { title: 'type', align: 'left' },
  { title: 'written', align: 'left' },
];

export async function runStreams({ options }: Input<typeof streamsOptions>, io: Io): Promise<ExitCode> {
  const query = queryOf(options);
  if (query.size === 0) throw new UsageError('Say which streams: --category, --type, --tag or --correlation.');
  query.append('embed', 'rich');
  const node = NodeClient.of(options, io.env);
  const interrupt = listenForInterrupt('Not all streams were found.', io);
  const found = new Map<string, Found>();
  let looked = 0;
  let place: string | null = 'head';
  try {
    while (place !== null && found.size < options.limit && looked < options.look) {
      const count = Math.min(PAGE_EVENTS, options.look - looked);
      const page: PageDocument = await pageAt(node, place, count, query, interrupt.signal);
      for (const { positionStreamId: stream = '', positionEventNumber = 0, eventType = '', updated } of page.entries) {
        if (found.size >= options.limit) break;
        looked++;
        if (!found.has(stream))
          found.set(stream, { stream, number: positionEventNumber, type: eventType, written: updated });
      }
      const older: string | undefined = page.links.find(({ relation }) => relation === 'next')?.uri;
      place = older === undefined ? null : /\/([^/]+)\/backward\//.exec(older)![1]!;
    }
  } finally {
    interrupt.release();
  }
  show([...found.values()], options.json, io);
  if (place !== null || found.size >= options.limit)
    line(
      io.stderr,
      `${counted(looked, 'event')} looked at, from the newest back; there may be more streams: raise --limit or --look.`,
    );
  return EXIT.ok;
}

async function pageAt(
  node: NodeClient,
  place: string,
  count: number,
  query: URLSearchParams,
  signal: AbortSignal,
): Promise<PageDocument> {
  const response = await node.call('GET', `${pathOf(null)}/${place}/backward/${count}?${query}`, {
    headers: { accept: 'application/vnd.eventstore.atom+json' },
    signal,
  });
  return JSON.parse(await expectStatus(response, [200], 'looking for streams')) as PageDocument;
}

function show(streams: readonly Found[], json: boolean, io: Io): void {
  if (json) for (const each of streams) line(io.stdout, JSON.stringify(each));
  else if (streams.length === 0) line(io.stderr, 'No streams have such events.');
  else
    for (const text of tableLines(
      COLUMNS,
      streams.map(({ stream, number, type, written }) => [stream, String(number), type, written]),
    ))
      line(io.stdout, text);
}
