import {
  arrayOf,
  BINARY,
  BOOLEAN,
  COUNT,
  documentOf,
  failing,
  INTEGER,
  json,
  media,
  object,
  ok,
  oneOf,
  problems,
  query,
  ref,
  segment,
  TEXT,
  TIME,
  UUID,
} from './schema-parts.ts';
import type {
  BackupDocument,
  BackupProgressDocument,
  BackupsDocument,
  BackupStartedDocument,
  BackupStatusDocument,
  CheckDocument,
  ChecksDocument,
  CheckStartedDocument,
  HoldDocument,
  SnapshotDocument,
} from '../documents/backup.ts';
import type { HeaderDoc, OperationDoc, Schema } from '../http/route.ts';

/** The OpenAPI document of backups. */

const SECONDS: Schema = { type: 'number', minimum: 0 };

const TEXT_OR_NULL: Schema = { type: ['string', 'null'] };
const TIME_OR_NULL: Schema = { type: ['string', 'null'], format: 'date-time' };
const orNull = (schema: Schema): Schema => ({ anyOf: [{ type: 'null' }, schema] });

export const BACKUP_SCHEMAS: Readonly<Record<string, Schema>> = {
  BackupStarted: documentOf<BackupStartedDocument>({ backupId: UUID }),
  BackupOptions: object({
    'pauseScavenge?': { ...BOOLEAN, description: 'Stop a running scavenge, and resume it afterwards.' },
  }),
  Backups: documentOf<BackupsDocument>({
    backups: arrayOf(
      documentOf<BackupDocument>({
        id: UUID,
        createdAt: { ...TIME, description: 'It contains everything acknowledged before.' },
        logEnd: { ...COUNT, description: 'Position in the log.' },
        shippedEnd: { ...COUNT, description: 'End of the log that was shipped after the backup.' },
        shippedAt: TIME,
        sizeBytes: { ...COUNT, description: 'Of the files that it restores.' },
        cause: oneOf('manual', 'scheduled', 'shipping'),
        nodeId: UUID,
      }),
    ),
    restorable: {
      ...arrayOf(documentOf<BackupsDocument['restorable'][number]>({ from: TIME, to: TIME })),
      description:
        'Each moment of these, to the millisecond, is one that `skua restore --to-time` takes. Gaps are where a scavenge removed what no earlier backup has. At most the latest 1000.',
    },
  }),
  BackupProgress: documentOf<BackupProgressDocument>({
    backupId: UUID,
    phase: oneOf('Starting', 'Copying', 'Pruning'),
    bytesDone: COUNT,
    bytesTotal: { ...COUNT, description: 'Of all files; 0 before they are known.' },
    startedAt: TIME,
    elapsedSeconds: SECONDS,
    remainingSeconds: {
      type: ['number', 'null'],
      minimum: 0,
      description: 'At the speed so far; null until it can be estimated.',
    },
  }),
  BackupStatus: documentOf<BackupStatusDocument>({
    repository: TEXT_OR_NULL,
    schedule: TEXT_OR_NULL,
    shipEverySeconds: { type: ['number', 'null'], description: 'Null if the log is not shipped.' },
    newest: orNull(
      documentOf<NonNullable<BackupStatusDocument['newest']>>(
        { id: UUID, createdAt: TIME, logEnd: COUNT },
        'As known to the node, which checks every few minutes.',
      ),
    ),
    restorable: orNull(
      documentOf<NonNullable<BackupStatusDocument['restorable']>>(
        { position: COUNT, at: TIME },
        'The newest state that can be restored.',
      ),
    ),
    unshippedBytes: {
      type: ['integer', 'null'],
      description: 'What would be lost with the node; null if the log is not shipped.',
    },
    shipLagSeconds: { type: ['number', 'null'] },
    provenAt: { ...TIME_OR_NULL, description: 'When a drill last passed.' },
    verified: orNull(
      documentOf<NonNullable<BackupStatusDocument['verified']>>(
        { at: TIME, errors: COUNT },
        'The last verification since the node started.',
      ),
    ),
    current: orNull(ref('BackupProgress')),
    last: orNull(
      documentOf<NonNullable<BackupStatusDocument['last']>>(
        { backupId: UUID, result: oneOf('Success', 'Aborted', 'Failed'), error: TEXT_OR_NULL },
        'The last backup since the node started.',
      ),
    ),
    commands: orNull(
      documentOf<NonNullable<BackupStatusDocument['commands']>>(
        { restore: TEXT, restoreToTime: TEXT, list: TEXT, verify: TEXT, drill: TEXT },
        'To be run elsewhere; they contain no secrets.',
      ),
    ),
  }),
  BackupCheckStarted: documentOf<CheckStartedDocument>({ checkId: UUID }),
  BackupChecks: documentOf<ChecksDocument>({
    checks: {
      ...arrayOf(
        documentOf<CheckDocument>({
          checkId: UUID,
          kind: oneOf('verify', 'drill'),
          state: oneOf('running', 'done', 'failed', 'aborted'),
          phase: TEXT_OR_NULL,
          bytesDone: COUNT,
          bytesTotal: COUNT,
          startedAt: TIME,
          endedAt: TIME_OR_NULL,
          elapsedSeconds: SECONDS,
          error: { ...TEXT_OR_NULL, description: 'The error, for `failed`.' },
          isGood: { type: ['boolean', 'null'], description: 'Nothing wrong was found; null before the end.' },
          report: {
            type: ['object', 'null'],
            description: 'Counts, and in `findings` the first hundred problems: `where`, `kind`, `message`.',
          },
        }),
      ),
      description: 'Newest first.',
    },
  }),
  BackupHold: documentOf<HoldDocument>({
    holdId: UUID,
    expiresAt: { ...TIME, description: 'When it ends unless used before.' },
    nodeId: UUID,
    takenAt: { ...TIME, description: 'Everything acknowledged before is in the files.' },
    logEnd: { ...COUNT, description: 'Log position up to which the files are complete.' },
    files: COUNT,
    sizeBytes: { ...COUNT, description: 'Of all files.' },
  }),
  BackupFiles: documentOf<SnapshotDocument>({
    nodeId: UUID,
    takenMs: { type: 'number', description: 'Milliseconds since 1970.' },
    chunkSizeBytes: COUNT,
    checkpoints: documentOf<SnapshotDocument['checkpoints']>({
      writer: COUNT,
      chaser: COUNT,
      epoch: INTEGER,
      proposal: INTEGER,
    }),
    files: {
      ...arrayOf(
        documentOf<SnapshotDocument['files'][number]>({
          path: TEXT,
          kind: oneOf(
            'index-map',
            'existence-checkpoint',
            'existence-filter',
            'index-table',
            'bloom-filter',
            'scavenge-database',
            'proof',
            'redactions',
            'checkpoint',
            'chunk',
            'ongoing-chunk',
          ),
          sizeBytes: COUNT,
        }),
      ),
      description: 'In the order in which they have to be copied.',
    },
  }),
};

const BUSY = {
  409: failing(
    'A backup or a scavenge is running; `backupId` or `scavengeId` says which. Or the node has no repository (`backup_off`).',
  ),
};
const OFF = { 409: failing('The node has no repository (`backup_off`).') };
const REPOSITORY = { ...problems(400, 406, 500, 503) };
const HOLD = segment(
  'hold',
  'Id of a hold, as returned when it was started.',
  TEXT,
  '6f9d3c1a-58c6-4a0f-8a8e-2f0c7b1d9e64',
);
const HOLD_QUERY = {
  ...query('hold', 'Id of a hold, which this renews.', TEXT, '6f9d3c1a-58c6-4a0f-8a8e-2f0c7b1d9e64'),
  required: true,
};
const NO_HOLD = { 404: failing('There is no such hold, or it has ended: start a new one.') };
const FILE = segment(
  'path',
  'Path of a file, as in the list.',
  { type: 'string', minLength: 1 },
  'chunk-000000.000000',
);
const CONTENT = media(BINARY, 'application/octet-stream');
const LENGTH: Readonly<Record<string, HeaderDoc>> = {
  'Content-Length': { description: 'Bytes that follow.', required: true, schema: COUNT },
};
const CONTENT_RANGE: HeaderDoc = { description: 'The range of these bytes in the file.', required: true, schema: TEXT };

export const BACKUP_DOCS = {
  start: {
    summary: 'Back the node up',
    description:
      "To the repository that the node's option `Backup:Repository` names, and nowhere else. 202: it has started; `/admin/backup/current` shows its progress.",
    parameters: [query('pauseScavenge', 'Stop a running scavenge, and resume it afterwards.', BOOLEAN, true)],
    body: { required: false, content: json(ref('BackupOptions'), { pauseScavenge: true }) },
    responses: {
      202: ok('It has started.', json(ref('BackupStarted'))),
      ...REPOSITORY,
      ...BUSY,
      ...problems(413, 415),
    },
  },
  list: {
    summary: 'The backups in the repository',
    responses: { 200: ok('Newest first.', json(ref('Backups'))), ...REPOSITORY, ...OFF },
  },
  current: {
    summary: 'Progress of the backup',
    responses: { 200: ok('The running backup.', json(ref('BackupProgress'))), ...problems(400, 404, 406) },
  },
  abort: {
    summary: 'Stop the backup',
    description: 'Answered when it has stopped. The next one reuses what it stored.',
    responses: { 200: ok('It has ended.', json(ref('BackupStarted'))), ...problems(400, 404, 406) },
  },
  hold: {
    summary: 'Hold the files for a copy',
    description:
      'The files contain all events and users, so operators may not read them. During a hold no scavenge starts and no chunk or index table is removed. It ends a minute after its last use.',
    responses: {
      200: ok('The hold.', json(ref('BackupHold'))),
      ...problems(400, 406, 503),
      409: failing('A scavenge is running; `scavengeId` says which.'),
    },
  },
  renew: {
    summary: 'Keep a hold',
    description: 'For another minute.',
    parameters: [HOLD],
    responses: { 200: ok('The hold.', json(ref('BackupHold'))), ...problems(400, 406), ...NO_HOLD },
  },
  release: { summary: 'End a hold', parameters: [HOLD], responses: { 204: ok('It has ended.'), ...NO_HOLD } },
  files: {
    summary: 'The files of a hold',
    parameters: [HOLD_QUERY],
    responses: {
      200: ok('What has to be copied to make a consistent backup.', json(ref('BackupFiles'))),
      ...problems(400, 406),
      ...NO_HOLD,
    },
  },
  file: {
    summary: 'A file of a hold',
    description: 'As it was when the hold started.',
    parameters: [
      FILE,
      HOLD_QUERY,
      query('from', 'First byte. With `length`, overrides `Range`.', COUNT, 0),
      query('length', 'Bytes, at most.', COUNT, 1_048_576),
      {
        name: 'Range',
        in: 'header',
        description: 'One part of the file.',
        schema: { type: 'string', pattern: '^bytes=\\d*-\\d*$' },
        example: 'bytes=0-127',
      },
    ],
    responses: {
      200: ok('The file, or the part that the query asks for.', CONTENT, LENGTH),
      206: ok('The part that `Range` asks for.', CONTENT, { ...LENGTH, 'Content-Range': CONTENT_RANGE }),
      416: failing('The range is outside the file.', { 'Content-Range': CONTENT_RANGE }),
      ...problems(400),
      404: failing('There is no such file in this hold, or no such hold.'),
    },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;

const CHECK_BUSY = {
  409: failing('Another check is in progress (`task_running`), or the node has no repository (`backup_off`).'),
};

export const CHECK_DOCS = {
  status: {
    summary: 'Status of the backups of the node',
    description: 'What the node knows without asking its repository.',
    responses: { 200: ok('The status.', json(ref('BackupStatus'))), ...problems(400, 406) },
  },
  verify: {
    summary: 'Check the repository',
    description:
      'In the background: checks that everything the backups need exists, and verifies all or part of it against its checksums.',
    parameters: [
      query('subset', 'The share of the content to read, a different part every day.', { type: 'number' }, 0.1),
    ],
    responses: { 202: ok('It has started.', json(ref('BackupCheckStarted'))), ...problems(400, 406), ...CHECK_BUSY },
  },
  drill: {
    summary: 'Test that a backup can be restored',
    description: 'In the background: it is restored to a temporary folder, opened and verified there, and removed.',
    parameters: [
      query('backup', 'Id of a backup; the default is the newest.', TEXT, '3a8b1f60-7c2d-4f4e-9a51-0c6d2e8f7b10'),
    ],
    responses: { 202: ok('It has started.', json(ref('BackupCheckStarted'))), ...problems(400, 406), ...CHECK_BUSY },
  },
  list: {
    summary: 'The last checks of the backups',
    responses: { 200: ok('The last 8 since the node started.', json(ref('BackupChecks'))), ...problems(400, 406) },
  },
  abort: {
    summary: 'Stop a check of the backups',
    description: 'Answered when it has stopped.',
    responses: { 200: ok('It has ended.', json(ref('BackupCheckStarted'))), ...problems(400, 404, 406) },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
