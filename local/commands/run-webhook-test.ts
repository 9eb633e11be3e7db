import { SKIPPED_STATUSES, SCRIPT_BYTES_MAX } from '../../core/webhook/api.ts';
import type { TestResult } from '../../core/webhook/api.ts';
import { tryScript } from '../../core/webhook/routing/routing.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { coloursFor, EXIT, line } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import type { Input } from '../cli/command.ts';
import { namedValues, PAYLOAD_BYTES_MAX, readInput, utf8Text } from '../cli/input.ts';
import { openSandbox, ROUTING_LIMITS } from '../webhook/open-webhooks.ts';
import type { webhookTestOptions } from './options-command.ts';

/** Stands where a node has the id of the connector. */
const CONNECTOR_ID = 'trial';

/** Runs a script on a payload as a node would, and shows what would come of the call. */
export async function runWebhookTest(
  { options, positionals }: Input<typeof webhookTestOptions>,
  io: Io,
): Promise<ExitCode> {
  const [scriptFile, payloadFile] = positionals as [string, string];
  const headers = new Map([
    ['content-type', 'application/json'],
    ...namedValues('header', options.header, (name) => name.toLowerCase()),
  ]);
  const query = namedValues('query', options.query);
  const script = utf8Text(await readInput(scriptFile, SCRIPT_BYTES_MAX))?.replace(/^\uFEFF/, '') ?? null;
  const body = utf8Text(await readInput(payloadFile, PAYLOAD_BYTES_MAX));
  const result =
    script === null
      ? failed(`${scriptFile} is not UTF-8 text.`)
      : await run(
          script,
          { body: body ?? '', headers: objectOf(headers), query: objectOf(query) },
          { streams: options.stream.length > 0 ? options.stream : null, timeoutMs: options['script-timeout-ms'] },
        );
  if (options.json) line(io.stdout, JSON.stringify(result));
  else showTrial(result, io);
  // A script may well want nothing of a call.
  return result.outcome === 'routed' || result.outcome === 'skipped' ? EXIT.ok : EXIT.failed;
}

async function run(
  script: string,
  input: { body: string; headers: Record<string, string>; query: Record<string, string> },
  { streams, timeoutMs }: { readonly streams: readonly string[] | null; readonly timeoutMs: number },
): Promise<TestResult> {
  const sandbox = openSandbox({ ...ROUTING_LIMITS, timeoutMs });
  try {
    const result = await tryScript(
      { sandbox, clock: systemClock },
      { lane: CONNECTOR_ID, connectorId: CONNECTOR_ID, script, streams, input },
    );
    return { ...result, durationMs: Math.round(result.durationMs * 1000) / 1000 };
  } finally {
    await sandbox.close();
  }
}

function failed(error: string): TestResult {
  return { outcome: 'failed', stream: null, schema: null, error, durationMs: 0 };
}

/** Without a prototype, so that `__proto__` is a name like any other. */
function objectOf(values: ReadonlyMap<string, string>): Record<string, string> {
  const object = Object.create(null) as Record<string, string>;
  for (const [name, value] of values) object[name] = value;
  return object;
}

const OUTCOMES: Readonly<Record<TestResult['outcome'], string>> = {
  routed: 'routed',
  skipped: 'skipped: nothing would be written',
  failed: 'failed, status 500',
  'timed-out': 'timed out, status 500',
  unavailable: 'unavailable, status 503',
  'invalid-json': 'not JSON, status 400',
};

const OTHER_STATUSES = SKIPPED_STATUSES.filter((status) => status !== 400)
  .join(', ')
  .replace(/, (?=\d+$)/, ' or ');

/** What would come of the call, for people. */
export function showTrial({ outcome, stream, schema, error, durationMs, warnings = [] }: TestResult, io: Io): void {
  const { bold, green, red, yellow } = coloursFor(io.stdout, io.env);
  const paint = outcome === 'routed' ? green : outcome === 'skipped' ? yellow : red;
  line(io.stdout, `Outcome:  ${paint(OUTCOMES[outcome])}`);
  if (outcome === 'skipped')
    line(
      io.stdout,
      `Answer:   400, unless the connector's setting skippedStatus says ${OTHER_STATUSES}: many senders treat 400 as a failure`,
    );
  if (stream !== null) {
    line(io.stdout, `Stream:   ${bold(stream)}`);
    line(io.stdout, `Schema:   ${schema ?? 'none: the type is WebhookReceived'}`);
  }
  if (error !== null) line(io.stdout, `Why:      ${error}`);
  for (const warning of warnings) line(io.stdout, `Warning:  ${yellow(warning)}`);
  line(io.stdout, `Duration: ${durationMs.toFixed(2)} ms`);
}
