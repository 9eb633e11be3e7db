import {
  arrayOf,
  BOOLEAN,
  COUNT,
  documentOf,
  failing,
  INTEGER,
  json,
  jsonOrText,
  ok,
  oneOf,
  PARAMETERS,
  problems,
  query,
  ref,
  segment,
  TEXT,
  TIME,
  UUID,
} from './schema-parts.ts';
import type { OperationDoc, ParameterDoc, Schema } from '../http/route.ts';
import type {
  CurrentDocument,
  DryRunDocument,
  ExplanationDocument,
  LastDocument,
  ResumedPointDocument,
  ProgressDocument,
  StartedDocument,
  TracesMembers,
} from '../documents/scavenging.ts';
import type { LoadedCertificate, MergeIndexesDocument, MessageDocument, ReloadResult } from '../documents/node.ts';
import type { IdentityDocument } from '../documents/users.ts';
import type { MembersOf } from './schema-parts.ts';

/** The OpenAPI document of scavenging and node administration. */

const INT32_MAX = 2_147_483_647;
const SECONDS: Schema = { type: 'number', minimum: 0 };
const RULE = oneOf('tombstone', '$tb', '$maxCount', '$maxAge', 'superseded-metadata');

/** On object storage, of the last run when none is running. */
const TRACES: MembersOf<TracesMembers> = {
  'tracesUntil?': {
    ...TIME,
    description: 'On object storage: latest time until which traces remain of what the last run removed.',
  },
  'tracesGone?': { ...TIME, description: 'On object storage: time since which no trace is left.' },
};

export const ADMIN_SCHEMAS: Readonly<Record<string, Schema>> = {
  OlderScavengePoint: documentOf<ResumedPointDocument>(
    {
      why: {
        ...oneOf('unfinished', 'unreached'),
        description:
          '`unfinished`: of an unfinished run; `unreached`: the log has the point, but no run has reached it.',
      },
      position: COUNT,
      eventNumber: COUNT,
      effectiveNow: TIME,
      threshold: INTEGER,
    },
    'An older scavenge point: what was deleted or has expired since is left to the run after the one that uses it.',
  ),
  ScavengeStarted: documentOf<StartedDocument>({ scavengeId: UUID, 'olderPoint?': ref('OlderScavengePoint') }),
  ScavengeCurrent: documentOf<CurrentDocument>(
    {
      scavengeId: TEXT,
      scavengeLink: TEXT,
      'olderPoint?': ref('OlderScavengePoint'),
      'waiting?': ref('OlderScavengePoint'),
      ...TRACES,
    },
    'Empty strings when none is running. `olderPoint`: the point this run uses; `waiting`: the point the next start uses, unless with `startAfresh`.',
  ),
  ScavengeLast: documentOf<LastDocument>({
    scavengeId: UUID,
    scavengeLink: TEXT,
    scavengeResult: oneOf('Unknown', 'InProgress', 'Success', 'Stopped', 'Errored', 'Interrupted'),
    'error?': TEXT,
    'olderPoint?': ref('OlderScavengePoint'),
    'waiting?': ref('OlderScavengePoint'),
    ...TRACES,
  }),
  ScavengeProgress: documentOf<ProgressDocument>({
    scavengeId: UUID,
    phase: oneOf(
      'Starting',
      'Accumulation',
      'Calculation',
      'Chunk execution',
      'Chunk merging',
      'Index execution',
      'Cleaning',
    ),
    chunksDone: COUNT,
    chunksTotal: COUNT,
    bytesDone: COUNT,
    bytesTotal: COUNT,
    bytesReclaimed: { type: 'integer', description: 'Negative when files grew.' },
    startedAt: TIME,
    elapsedSeconds: SECONDS,
    remainingSeconds: {
      type: ['number', 'null'],
      description: 'For this phase, at its speed so far; null until it can be estimated.',
    },
    'tracesRemainSeconds?': {
      type: 'number',
      minimum: 0,
      description: 'On object storage: how long after its end traces of what it removes remain.',
    },
    'phaseShare?': { type: 'number', minimum: 0, maximum: 1, description: 'Share of the phase that is done.' },
    'olderPoint?': ref('OlderScavengePoint'),
  }),
  DryRunReport: documentOf<DryRunDocument>({
    scavengeId: UUID,
    threshold: INTEGER,
    point: documentOf<DryRunDocument['point']>({ position: COUNT, eventNumber: COUNT, effectiveNow: TIME }),
    chunks: arrayOf(
      documentOf<DryRunDocument['chunks'][number]>({
        file: TEXT,
        start: COUNT,
        end: COUNT,
        weight: { type: 'number' },
        records: COUNT,
        discardable: COUNT,
        redactable: COUNT,
        bytes: COUNT,
        bytesReclaimable: INTEGER,
        wouldExecute: BOOLEAN,
      }),
    ),
    totals: documentOf<DryRunDocument['totals']>({
      chunks: COUNT,
      records: COUNT,
      discardable: COUNT,
      redactable: COUNT,
      bytes: COUNT,
      bytesReclaimable: INTEGER,
      chunksExecuted: COUNT,
    }),
    'waiting?': ref('OlderScavengePoint'),
  }),
  Explanation: documentOf<ExplanationDocument>({
    stream: TEXT,
    lastEventNumber: { type: 'integer', minimum: -1 },
    metadata: { anyOf: [{ type: 'null' }, ref('StreamMetadata')] },
    rules: arrayOf(
      documentOf<ExplanationDocument['rules'][number]>({
        rule: RULE,
        value: { type: ['number', 'string', 'boolean'] },
      }),
    ),
    removed: arrayOf(
      documentOf<ExplanationDocument['removed'][number]>({
        from: COUNT,
        to: COUNT,
        count: COUNT,
        bytes: COUNT,
        rule: RULE,
      }),
    ),
    kept: arrayOf(documentOf<ExplanationDocument['kept'][number]>({ from: COUNT, to: COUNT, count: COUNT, why: TEXT })),
    'marked?': documentOf<NonNullable<ExplanationDocument['marked']>>(
      { count: COUNT, bytes: COUNT },
      'Redacted events whose content, of so many bytes, is still in the files and would go.',
    ),
    'redacted?': documentOf<NonNullable<ExplanationDocument['redacted']>>(
      { number: COUNT, bytes: COUNT },
      'The last event of a deleted stream, which stays without its data.',
    ),
    'ignored?': {
      ...arrayOf(
        documentOf<NonNullable<ExplanationDocument['ignored']>[number]>({
          key: { type: ['string', 'null'] },
          value: TEXT,
          why: TEXT,
        }),
      ),
      description: 'Metadata without effect, and why.',
    },
    'waiting?': {
      allOf: [ref('OlderScavengePoint')],
      type: 'object',
      required: ['leaves'],
      properties: {
        leaves: arrayOf(
          documentOf<ExplanationDocument['removed'][number]>({
            from: COUNT,
            to: COUNT,
            count: COUNT,
            bytes: COUNT,
            rule: RULE,
          }),
        ),
      },
      description: 'The point that the next start uses instead, and what of `removed` it leaves.',
    },
  }),
  ReloadResult: documentOf<ReloadResult>({
    options: arrayOf(
      documentOf<ReloadResult['options'][number]>({ name: TEXT, from: TEXT, to: TEXT }, 'Secret values are masked.'),
    ),
    ignoredOptions: { ...arrayOf(TEXT), description: 'Options whose new value needs a restart.' },
    certificatesChanged: BOOLEAN,
    certificates: { ...arrayOf(ref('Certificate')), description: 'Current ones; none without TLS.' },
  }),
  Certificate: documentOf<LoadedCertificate>({
    kind: oneOf('node', 'intermediate', 'root'),
    subject: TEXT,
    serial: TEXT,
    thumbprint: TEXT,
    notAfter: TIME,
    daysLeft: { type: 'number' },
  }),
  MergeIndexes: documentOf<MergeIndexesDocument>({ mergeIndexesId: UUID }),
  Message: documentOf<MessageDocument>({ message: TEXT }),
  LoginEcho: documentOf<IdentityDocument>({
    data: documentOf<IdentityDocument['data']>({
      loginName: TEXT,
      fullName: TEXT,
      groups: arrayOf(TEXT),
      'dateLastUpdated?': { type: ['string', 'null'], format: 'date-time' },
    }),
    success: BOOLEAN,
  }),
};

const F = PARAMETERS.adminFormat;
const NOT_RUNNING = problems(404);
const DRY_RUN_ID = segment(
  'scavenge',
  'Id of a dry run, as returned by its start.',
  TEXT,
  '0d0f7c3e-1d3e-4c55-8a5a-53e2c1b6a0f4',
);

/** Of the cluster, to a node. */
const ORDER: readonly ParameterDoc[] = [
  query(
    'clusterScavengeId',
    'Of auto-scavenge: the cycle that the request belongs to; with `attempt`.',
    UUID,
    '7d1f0c9e-5b2a-4a63-8c1d-90b1b7c3a001',
  ),
  query(
    'attempt',
    'Of auto-scavenge: grows from order to order of a cycle. A lower one than the highest received is refused; a repeat gets the same answer as the first.',
    COUNT,
    3,
  ),
];

const START: readonly ParameterDoc[] = [
  query('threads', 'Worker threads; more than 4 count as 4.', { type: 'integer', minimum: 1, maximum: INT32_MAX }, 1),
  query(
    'threshold',
    'Chunks of at least this weight are rewritten; 0: every one with any weight; negative: every one.',
    { type: 'integer', minimum: -INT32_MAX - 1, maximum: INT32_MAX },
    0,
  ),
  query(
    'throttlePercent',
    'Percentage of the time spent working; below 100 only with one thread.',
    { type: 'integer', minimum: 1, maximum: 100 },
    100,
  ),
  query('syncOnly', 'Use an existing scavenge point; write none.', BOOLEAN, false),
  query(
    'startAfresh',
    'Start at a new scavenge point, and abandon an unfinished run, if there is one. Not with `syncOnly`.',
    BOOLEAN,
    true,
  ),
  query('dryRun', 'Only report what would be done.', BOOLEAN, true),
  query('startFromChunk', 'Checked, and otherwise ignored.', COUNT, 0),
];

export const SCAVENGE_DOCS = {
  start: {
    summary: 'Start a scavenge, or a dry run of one',
    description:
      'Resumes an unfinished run, under a new id and up to its point, which `olderPoint` then names: what was deleted since needs another run. Answered when it has started.',
    parameters: [...START, ...ORDER, F],
    responses: {
      200: ok('It has started.', jsonOrText(ref('ScavengeStarted'))),
      ...problems(400, 406),
      409: failing('A scavenge is running; `scavengeId` names it. Or the order is out of date.'),
    },
  },
  current: {
    summary: 'The scavenge that is running',
    parameters: [F],
    responses: { 200: ok('Its id, or empty strings.', jsonOrText(ref('ScavengeCurrent'))), ...problems(400, 406) },
  },
  stop: {
    summary: 'Stop a scavenge',
    description: 'Answered when it has stopped, however long that takes. The next start resumes where it stopped.',
    parameters: [...ORDER, F],
    responses: {
      200: ok('It has stopped; its id.', jsonOrText(UUID)),
      ...problems(400, 404, 406),
      409: failing('The order is out of date.'),
    },
  },
  last: {
    summary: 'The last scavenge since the node started',
    parameters: [...ORDER, F],
    responses: { 200: ok('The scavenge and its result.', jsonOrText(ref('ScavengeLast'))), ...problems(400, 406) },
  },
  progress: {
    summary: 'Progress of the running scavenge',
    responses: { 200: ok('The progress.', json(ref('ScavengeProgress'))), ...problems(400, 406), ...NOT_RUNNING },
  },
  dryRun: {
    summary: 'What a scavenge would do',
    parameters: [DRY_RUN_ID],
    responses: {
      200: ok('The report.', json(ref('DryRunReport'))),
      202: ok('It is still running.', json(ref('ScavengeStarted'))),
      ...problems(400, 404, 406),
    },
  },
  explain: {
    summary: 'What a scavenge would remove from a stream, and why',
    description: 'Requires the right to read the stream and its metadata.',
    responses: { 200: ok('The explanation.', json(ref('Explanation'))), ...problems(400, 404, 406) },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;

const PRIORITY = segment(
  'n',
  'Priority in leader elections; a higher one is preferred.',
  { type: 'integer', minimum: -INT32_MAX - 1, maximum: INT32_MAX },
  1,
);

export const ADMIN_DOCS = {
  shutdown: {
    summary: 'Stop the node',
    description: 'Cleanly, after the answer: accepted work is finished, and a scavenge is stopped.',
    responses: { 200: ok('The node is about to stop.') },
  },
  reload: {
    summary: 'Reload the configuration and the certificates',
    description: 'All or nothing: when anything fails to load, nothing is changed. Connections stay open.',
    parameters: [F],
    responses: {
      200: ok('What was changed.', jsonOrText(ref('ReloadResult'))),
      ...problems(400, 406),
      409: failing('Nothing was changed; `file` and `reason` say why.'),
    },
  },
  mergeIndexes: {
    summary: 'Merge all tables of the index into one',
    description:
      'In the background, before or after the index phase of a scavenge. If one is in progress, its id is returned.',
    parameters: [F],
    responses: { 200: ok('Id of the work, as in the log.', jsonOrText(ref('MergeIndexes'))), ...problems(400, 406) },
  },
  setPriority: {
    summary: 'Set the priority of the node',
    description: 'Until the node is restarted.',
    parameters: [PRIORITY],
    responses: { 200: ok('It is set.'), ...problems(400) },
  },
  resign: {
    summary: 'Give up leadership',
    description: 'Without effect on a single node.',
    parameters: [F],
    responses: { 200: ok('The outcome.', jsonOrText(ref('Message'))), ...problems(400, 406) },
  },
  login: {
    summary: 'Who the caller is',
    responses: { 200: ok('The caller.', json(ref('LoginEcho'))), ...problems(400, 406) },
  },
  openApi: {
    summary: 'This document',
    responses: {
      200: ok('The document.', json({ type: 'object' }), {
        'Cache-Control': { description: 'It stays as it is while the node runs.', required: true, schema: TEXT },
      }),
    },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
