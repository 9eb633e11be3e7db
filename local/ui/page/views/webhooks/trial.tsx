import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get, post } from '../../api/page-client.ts';
import { ApiError, errorOf } from '../../api/problem-text.ts';
import { durationText, numberText } from '../../lib/format.ts';
import { Badge } from '../../parts/badge.tsx';
import type { Tone } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { Failure } from '../../parts/empty-state.tsx';
import { connectorPath, violationsOf } from './connector-list.ts';
import { encodedScript, linesOf } from './settings-form.ts';
import type { EmbeddedEntryDocument, PageDocument } from '../../../../../handlers/documents/streams.ts';
import type { ScriptTestDocument } from '../../../../../handlers/documents/connectors.ts';

const OUTCOMES: Readonly<Record<ScriptTestDocument['outcome'], { readonly word: string; readonly tone: Tone }>> = {
  routed: { word: 'Routed', tone: 'ok' },
  skipped: { word: 'Skipped: nothing would be written', tone: 'plain' },
  failed: { word: 'Failed', tone: 'bad' },
  'timed-out': { word: 'Took too long', tone: 'bad' },
  unavailable: { word: 'Could not be run at the moment', tone: 'warn' },
  'invalid-json': { word: 'The payload is not JSON', tone: 'bad' },
};

const RECENT_COUNT = 10;
/** Milliseconds without a key after which what was typed is tried. */
const PAUSE_MS = 400;

export interface TrialProps {
  /** Null for one that is not there yet. */
  readonly id: string | null;
  readonly script: string;
  /** Where the connector may write, one a line. */
  readonly streams: string;
  /** Where payloads of this connector are likely to be. */
  readonly stream: string;
  readonly onLine: (line: number | null) => void;
}

/** Runs the script that is being written on a payload, as one types; nothing is written, and nothing saved. */
export function Trial({ id, script, streams, stream, onLine }: TrialProps) {
  const [payload, setPayload] = useState('{\n  "number": 1742,\n  "customer": "Ann"\n}');
  const [headers, setHeaders] = useState('');
  const [query, setQuery] = useState('');
  const [result, setResult] = useState<ScriptTestDocument | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const typed = [script, streams, payload, headers, query].join('\0');
  // The text at first was not typed by the user.
  const tried = useRef(typed);
  const runs = useRef(0);
  const run = async () => {
    const number = ++runs.current;
    tried.current = typed;
    setBusy(true);
    setError(null);
    try {
      const given: Record<string, string> = {
        instanceTypeName: 'webhook-source',
        routingScript: encodedScript(script),
      };
      linesOf(streams).forEach((each, i) => (given[`streams:${i}`] = each));
      const answer = await post<ScriptTestDocument>(`${connectorPath(id ?? 'trial')}/test`, {
        body: payload,
        headers: pairsOf(headers, ':'),
        query: pairsOf(query, '='),
        settings: given,
      });
      // Of what was typed since there is another answer.
      if (number !== runs.current) return;
      setResult(answer);
      onLine(lineOf(answer.error));
    } catch (thrown) {
      if (number !== runs.current) return;
      const failed = errorOf(thrown);
      setResult(null);
      setError(failed);
      onLine(lineOf(textOf(failed)));
    }
    setBusy(false);
  };
  useEffect(() => {
    const timer = setTimeout(() => {
      if (tried.current !== typed) void run();
    }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <div class="stack tight trial">
      <RecentPayload
        stream={stream}
        onChosen={({ data, metaData }) => {
          if (data !== null) setPayload(data);
          setHeaders(headersOf(metaData));
        }}
      />
      <div class="field">
        <label for="trial-payload">Payload</label>
        <textarea
          id="trial-payload"
          class="mono"
          rows={7}
          spellcheck={false}
          value={payload}
          onInput={(event) => setPayload(event.currentTarget.value)}
        />
      </div>
      <div class="form-columns">
        <div class="field">
          <label for="trial-headers">
            Headers <span class="faint optional">name: value, one per line</span>
          </label>
          <textarea
            id="trial-headers"
            class="mono"
            rows={2}
            spellcheck={false}
            placeholder="x-event: order-placed"
            value={headers}
            onInput={(event) => setHeaders(event.currentTarget.value)}
          />
        </div>
        <div class="field">
          <label for="trial-query">
            Query <span class="faint optional">name=value, one per line</span>
          </label>
          <textarea
            id="trial-query"
            class="mono"
            rows={2}
            spellcheck={false}
            value={query}
            onInput={(event) => setQuery(event.currentTarget.value)}
          />
        </div>
      </div>
      <div class="row">
        <Button icon="play" isBusy={isBusy} onClick={() => void run()}>
          Try the script
        </Button>
        <span class="faint small">Nothing is written or saved.</span>
      </div>
      <div role="status" class="trial-result">
        {error !== null && <Failure error={error} title="The script could not be tried" text={textOf(error)} />}
        {result !== null && (
          <Definitions
            items={[
              ['Outcome', <Badge tone={OUTCOMES[result.outcome].tone}>{OUTCOMES[result.outcome].word}</Badge>],
              result.stream === null ? null : ['Stream', <code class="break">{result.stream}</code>],
              result.outcome !== 'routed'
                ? null
                : ['Type', <code class="break">{result.schema ?? 'WebhookReceived'}</code>],
              ...(result.warnings ?? []).map((warning): readonly [string, ComponentChildren] => [
                'Warning',
                <span class="break">{warning}</span>,
              ]),
              result.error === null ? null : ['Error', <span class="break bad-text">{result.error}</span>],
              ['Time', durationText(result.durationMs)],
            ]}
          />
        )}
      </div>
    </div>
  );
}

/** Payloads that were written before, to try the script on. */
function RecentPayload({
  stream,
  onChosen,
}: {
  readonly stream: string;
  readonly onChosen: (event: EmbeddedEntryDocument) => void;
}) {
  const [name, setName] = useState<string | null>(null);
  const [events, setEvents] = useState<readonly EmbeddedEntryDocument[] | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const asked = name ?? stream;
  const load = async () => {
    setError(null);
    try {
      const { entries } = await get<PageDocument<EmbeddedEntryDocument>>(
        `/streams/${encodeURIComponent(asked)}/head/backward/${RECENT_COUNT}`,
        { query: { embed: 'body' } },
      );
      setEvents(entries);
      if (entries[0] !== undefined) onChosen(entries[0]);
      else setError(new ApiError('empty', 'There is no event in this stream.'));
    } catch (thrown) {
      setEvents(null);
      setError(errorOf(thrown));
    }
  };
  return (
    <div class="stack tight">
      <div class="row trial-recent">
        <div class="field grow">
          <label for="trial-stream">Recent payload of a stream</label>
          <input
            id="trial-stream"
            value={asked}
            spellcheck={false}
            autocomplete="off"
            placeholder="order-1742"
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </div>
        {events !== null && events.length > 1 && (
          <div class="field">
            <label for="trial-event">Event</label>
            <select id="trial-event" onChange={(event) => onChosen(events[Number(event.currentTarget.value)]!)}>
              {events.map((each, i) => (
                <option key={each.eventNumber} value={i}>{`${numberText(each.eventNumber)} ${each.eventType}`}</option>
              ))}
            </select>
          </div>
        )}
        <Button isDisabled={asked === ''} onClick={() => void load()}>
          Take
        </Button>
      </div>
      {error !== null && (
        <div role="alert">
          <Failure error={error} />
        </div>
      )}
    </div>
  );
}

function textOf(error: ApiError): string {
  const violations = violationsOf(error);
  return violations.length > 0 ? violations.map(({ description }) => description).join(' ') : error.message;
}

/** As the node names a place in a script. */
function lineOf(text: string | null): number | null {
  const line = /\(line (\d{1,9}),/.exec(text ?? '')?.[1];
  return line === undefined ? null : Number(line);
}

function pairsOf(text: string, separator: string): Record<string, string> {
  return Object.fromEntries(
    linesOf(text).map((line) => {
      const at = line.indexOf(separator);
      return at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}

/** The headers that are kept with an event. */
function headersOf(metaData: string | null): string {
  try {
    const value: unknown = JSON.parse(metaData ?? '{}');
    return Object.entries(value as object)
      .filter(([, text]) => typeof text === 'string')
      .map(([name, text]) => `${name}: ${text as string}`)
      .join('\n');
  } catch {
    return '';
  }
}
