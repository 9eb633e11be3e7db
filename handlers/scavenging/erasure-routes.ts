import { SkuaError } from '../../core/base/errors.ts';
import type { ErasureFinding, ErasureReport, CheckErasureArgs } from '../../core/scavenge/api.ts';
import type { ErasureCheck } from '../../core/scavenge/scavenge.ts';
import { timestampText } from '../../core/base/time.ts';
import { readJson } from '../http/body.ts';
import { noteForAudit } from '../http/context.ts';
import type { App, Call, Handler } from '../http/context.ts';
import { JSON_ONLY, negotiate } from '../http/negotiate.ts';
import { featureOf } from '../http/presence.ts';
import { adminJson } from '../http/reply.ts';
import { inRoom } from '../http/room.ts';
import { area, operation } from '../http/route.ts';
import { decodeSegment } from '../http/url.ts';
import { checkInspection, mayInspect } from '../streams/access.ts';
import { ERASURE_DOCS } from '../openapi/erasure-paths.ts';
import type {
  ListedProofDocument,
  ProofDocument,
  ProofsDocument,
  ProofStartedDocument,
} from '../documents/scavenging.ts';

/**
 * Proofs of erasure over HTTP: the files of the node that is asked are searched for what remains of a stream or of
 * events.
 */

/** Largest body of POST `/admin/erasure` in bytes: a thousand ids, and a name. */
const BODY_BYTES_MAX = 65_536;

/** POST `/admin/erasure`: 202 once the search has begun. */
const startProof: Handler = async (call, app) => {
  const proofs = featureOf(call, app, 'erasure');
  negotiate(call, JSON_ONLY);
  const wanted = await wantedOf(call, app);
  noteForAudit(call, { target: wanted.stream, details: { events: wanted.events.length } });
  if (wanted.stream !== null) await checkInspection(call, app, wanted.stream);
  return adminJson(call, 202, { proofId: proofs.start(wanted) } satisfies ProofStartedDocument);
};

/**
 * GET `/admin/erasure`: the last ones, without what they found. Those of streams that the caller may not look into are
 * left out.
 */
const listProofs: Handler = async (call, app) => {
  const proofs = featureOf(call, app, 'erasure');
  negotiate(call, JSON_ONLY);
  const shown: ListedProofDocument[] = [];
  for (const proof of proofs.list())
    if (proof.subject.stream === null || (await mayInspect(call, app, proof.subject.stream)))
      shown.push(listedDocument(proof));
  return adminJson(call, 200, { proofs: shown } satisfies ProofsDocument);
};

/** GET `/admin/erasure/{id}`: how far it is, and in the end the report. */
const oneProof: Handler = async (call, app) => {
  const proofs = featureOf(call, app, 'erasure');
  negotiate(call, JSON_ONLY);
  const proof = proofs.get(decodeSegment(call.params['proof']!));
  const { stream } = proof.subject;
  if (stream !== null) await checkInspection(call, app, stream);
  return adminJson(call, 200, proofDocument(proof, await shownFindings(call, app, proof.report?.findings ?? [])));
};

/** A caller that knows the id of an event does not learn by it what the access list of its stream withholds. */
async function shownFindings(call: Call, app: App, findings: readonly ErasureFinding[]): Promise<Findings> {
  const decided = new Map<string, boolean>();
  for (const { stream } of findings)
    if (stream !== undefined && !decided.has(stream)) decided.set(stream, await mayInspect(call, app, stream));
  const shown = findings.filter(({ stream }) => stream === undefined || decided.get(stream));
  return { shown, hidden: findings.length - shown.length };
}

interface Findings {
  readonly shown: readonly ErasureFinding[];
  readonly hidden: number;
}

/** DELETE `/admin/erasure/{id}`: answered when it has ended. */
const abortProof: Handler = async (call, app) => {
  const proofs = featureOf(call, app, 'erasure');
  negotiate(call, JSON_ONLY);
  return adminJson(call, 200, {
    proofId: await proofs.abort(decodeSegment(call.params['proof']!)),
  } satisfies ProofStartedDocument);
};

function listedDocument(proof: ErasureCheck): ListedProofDocument {
  const {
    subject: { stream, events },
    report,
  } = proof;
  return { ...fieldsOf(proof, events.length), report: report === null ? null : reportFields(report, stream) };
}

function proofDocument(proof: ErasureCheck, { shown, hidden }: Findings): ProofDocument {
  const {
    subject: { stream, events },
    report,
  } = proof;
  return {
    ...fieldsOf(proof, events),
    report:
      report === null
        ? null
        : {
            ...reportFields(report, stream),
            findings: shown.map(({ kind, file, offset, what }) => ({ kind, file, offset, what })),
            hidden,
          },
  };
}

function fieldsOf<E>(
  { id, subject: { stream }, state, startedMs, endedMs, bytesDone, bytesTotal, elapsedSeconds, error }: ErasureCheck,
  events: E,
) {
  return {
    proofId: id,
    state,
    stream,
    events,
    startedAt: timeText(startedMs),
    endedAt: endedMs === null ? null : timeText(endedMs),
    bytesDone,
    bytesTotal,
    elapsedSeconds,
    error,
  };
}

function reportFields({ files, bytes, traces, residues, redacted }: ErasureReport, stream: string | null) {
  // A stream that was leaves at least residue; of an id nothing may be left.
  return {
    isErased: traces === 0,
    isStreamKnown: stream === null ? null : traces + residues > 0,
    files,
    bytes,
    traces,
    residues,
    redacted,
  };
}

function timeText(ms: number): string {
  return timestampText(Math.floor(ms), 0);
}

async function wantedOf(call: Call, app: App): Promise<CheckErasureArgs> {
  const body = await readJson(call, app, Math.min(BODY_BYTES_MAX, app.options.bodyBytesMax));
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new SkuaError(
      'bad_json',
      'The body must be a JSON object such as {"stream": "orders-42"} or {"events": ["..."]}.',
    );
  const { stream = null, events = [] } = body as { readonly stream?: unknown; readonly events?: unknown };
  if (stream !== null && typeof stream !== 'string')
    throw new SkuaError('bad_request', 'stream must be the name of a stream.');
  if (!Array.isArray(events) || events.some((id) => typeof id !== 'string'))
    throw new SkuaError('bad_request', 'events must be an array of ids.');
  return { stream: stream === '' ? null : stream, events: events as string[] };
}

const ERASURE = '/admin/erasure';

/** The paths of proofs of erasure. */
export const ERASURE_ROUTES = area({ tag: 'Scavenging', feature: 'erasure', offBy: 'disableAdminUi' }, [
  {
    path: ERASURE,
    methods: 'GET, POST, OPTIONS',
    operations: {
      GET: operation('operators', 'here', inRoom(listProofs), ERASURE_DOCS.list),
      POST: operation('operators', 'here', startProof, ERASURE_DOCS.start, 'erasure.prove'),
    },
  },
  {
    path: `${ERASURE}/:proof`,
    methods: 'DELETE, GET, OPTIONS',
    operations: {
      GET: operation('operators', 'here', inRoom(oneProof), ERASURE_DOCS.one),
      DELETE: operation('operators', 'here', abortProof, ERASURE_DOCS.abort, 'erasure.abort'),
    },
  },
]);
