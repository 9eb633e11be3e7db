import type { CheckpointDocument } from '../documents/checkpoints.ts';
import type { OperationDoc, Schema } from '../http/route.ts';
import { COUNT, documentOf, failing, json, ok, problems, query, ref, TEXT, UUID } from './schema-parts.ts';

/** The OpenAPI document of checkpoints of readers. */

type Checkpoint = NonNullable<CheckpointDocument['checkpoint']>;

const UUID_OR_NULL: Schema = { ...UUID, type: ['string', 'null'] };

export const CHECKPOINT_SCHEMAS: Readonly<Record<string, Schema>> = {
  Checkpoint: documentOf<Checkpoint>(
    {
      position: documentOf<Checkpoint['position']>({ commit: COUNT, prepare: COUNT }),
      id: { ...UUID_OR_NULL, description: 'Of the event at the position.' },
      epoch: {
        oneOf: [
          documentOf<NonNullable<Checkpoint['epoch']>>({ number: COUNT, position: COUNT, id: UUID }),
          { type: 'null' },
        ],
        description: 'The newest epoch at or before the position.',
      },
      log: { ...UUID_OR_NULL, description: 'Id of the log, where it lies in a bucket.' },
    },
    'Where a reader is, in a form that knows its log. To be kept as it is.',
  ),
  CheckpointAnswer: documentOf<CheckpointDocument>({
    checkpoint: { oneOf: [ref('Checkpoint'), { type: 'null' }], description: 'Null in a log without records.' },
    end: { ...COUNT, description: 'Where the log ends.' },
  }),
};

export const CHECKPOINT_DOC = {
  summary: 'Make a checkpoint, or ask whether one is of this log',
  description:
    'For readers that keep where they are. A checkpoint that was made of another log, or of a part of this one that was lost in a restore, is refused. It asks for no more rights than a read by category.',
  parameters: [
    query(
      'options',
      'JSON: `position` (of the last event that was read; default: the end of the log), its `id`, and `after` (the checkpoint that came before).',
      TEXT,
      '{}',
    ),
  ],
  responses: {
    200: ok('The checkpoint.', json(ref('CheckpointAnswer'))),
    ...problems(400, 406),
    409: failing('The checkpoint, or the event at the position, is not of this log (`checkpoint_unknown`).'),
  },
} as const satisfies OperationDoc;
