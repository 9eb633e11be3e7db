import {
  arrayOf,
  BOOLEAN,
  COUNT,
  documentOf,
  failing,
  json,
  object,
  ok,
  oneOf,
  problems,
  ref,
  segment,
  TEXT,
  TIME,
  UUID,
} from './schema-parts.ts';
import type { OperationDoc, Schema } from '../http/route.ts';
import type {
  ListedProofDocument,
  ProofDocument,
  ProofsDocument,
  ProofStartedDocument,
  ReportDocument,
} from '../documents/scavenging.ts';
import type { MembersOf } from './schema-parts.ts';

/** The OpenAPI document of proofs of erasure. */

const TEXT_OR_NULL: Schema = { type: ['string', 'null'] };
const PROOF: MembersOf<Omit<ListedProofDocument, 'events' | 'report'>> = {
  proofId: UUID,
  state: oneOf('running', 'done', 'failed', 'aborted'),
  stream: TEXT_OR_NULL,
  startedAt: TIME,
  endedAt: { type: ['string', 'null'], format: 'date-time' },
  bytesDone: COUNT,
  bytesTotal: { ...COUNT, description: '0 before it is known.' },
  elapsedSeconds: { type: 'number', minimum: 0 },
  error: { ...TEXT_OR_NULL, description: 'The error, for `failed`.' },
};
const REPORT: MembersOf<NonNullable<ListedProofDocument['report']>> = {
  isErased: { ...BOOLEAN, description: 'There is no trace.' },
  isStreamKnown: {
    type: ['boolean', 'null'],
    description:
      'False: there is no sign that the stream ever existed, so nothing is proved; check its name. Null if no stream was named.',
  },
  files: COUNT,
  bytes: COUNT,
  traces: { ...COUNT, description: 'Places where something remains of an event.' },
  redacted: {
    ...COUNT,
    description: 'Among the residues: last events of deleted streams that a scavenge has emptied.',
  },
  residues: { ...COUNT, description: 'Places that show that the stream existed, but nothing of its events.' },
};
const orNull = (schema: Schema): Schema => ({ anyOf: [{ type: 'null' }, schema] });

export const ERASURE_SCHEMAS: Readonly<Record<string, Schema>> = {
  ErasureWanted: object({
    'stream?': { ...TEXT_OR_NULL, description: 'The stream whose events should all be gone.' },
    'events?': { ...arrayOf(TEXT), description: 'Ids of events, 1 000 at most.' },
  }),
  ErasureStarted: documentOf<ProofStartedDocument>({ proofId: UUID }),
  ErasureProofs: documentOf<ProofsDocument>({
    proofs: {
      ...arrayOf(
        documentOf<ListedProofDocument>({
          ...PROOF,
          events: { ...COUNT, description: 'How many ids were given.' },
          report: orNull(documentOf<NonNullable<ListedProofDocument['report']>>(REPORT)),
        }),
      ),
      description: 'Newest first.',
    },
  }),
  ErasureProof: documentOf<ProofDocument>({
    ...PROOF,
    events: arrayOf(TEXT),
    report: orNull(
      documentOf<ReportDocument>(
        {
          ...REPORT,
          findings: {
            ...arrayOf(
              documentOf<ReportDocument['findings'][number]>({
                kind: oneOf('trace', 'residue'),
                file: TEXT,
                offset: COUNT,
                what: TEXT,
              }),
            ),
            description: 'The first thousand.',
          },
          hidden: { ...COUNT, description: 'Findings left out, of events in streams that the caller may not read.' },
        },
        'Covers the files of the node that was asked; backups, other members and a bucket have their own copies.',
      ),
    ),
  }),
};

const ID = segment('proof', 'Id of a proof, as returned by its start.', TEXT, '0d0f7c3e-1d3e-4c55-8a5a-53e2c1b6a0f4');

export const ERASURE_DOCS = {
  list: {
    summary: 'The last proofs of erasure',
    description: 'Except those of streams that the caller may not read.',
    responses: { 200: ok('The last 8 since the node started.', json(ref('ErasureProofs'))), ...problems(400, 406) },
  },
  start: {
    summary: 'Search for what remains of a stream or of events',
    description:
      'In the bytes of every file of the node that is asked. One at a time; no scavenge runs meanwhile. For a stream, requires the right to read it and its metadata.',
    body: { required: true, content: json(ref('ErasureWanted'), { stream: 'orders-42' }) },
    responses: {
      202: ok('It has started.', json(ref('ErasureStarted'))),
      ...problems(400, 406, 413, 415),
      409: failing('Another one is in progress (`task_running`), or a scavenge is.'),
    },
  },
  one: {
    summary: 'A proof of erasure',
    parameters: [ID],
    responses: {
      200: ok('Its progress, and finally its findings.', json(ref('ErasureProof'))),
      ...problems(400, 404, 406),
    },
  },
  abort: {
    summary: 'Stop a proof of erasure',
    description: 'Answered when it has stopped.',
    parameters: [ID],
    responses: { 200: ok('It has ended.', json(ref('ErasureStarted'))), ...problems(400, 404, 406) },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
