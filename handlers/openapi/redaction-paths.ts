import {
  arrayOf,
  BOOLEAN,
  COUNT,
  documentOf,
  failing,
  json,
  ok,
  problems,
  query,
  ref,
  TEXT,
  UUID,
} from './schema-parts.ts';
import type { OperationDoc, Schema } from '../http/route.ts';
import type { RedactBody, RedactedEventDocument, RedactionDocument } from '../documents/redaction.ts';

/** The OpenAPI document of redaction. */

export const REDACTION_SCHEMAS: Readonly<Record<string, Schema>> = {
  RedactionWanted: documentOf<RedactBody>({
    stream: TEXT,
    'events?': { ...arrayOf(COUNT), description: 'Numbers of events, 1 000 at most.' },
    'ids?': { ...arrayOf(UUID), description: 'Instead of numbers: ids of events, 1 000 at most.' },
    reason: { ...TEXT, description: 'Why, in 1 to 1 000 characters; it is kept, so leave out what is to go.' },
    'metadata?': {
      ...arrayOf(TEXT),
      description: 'Event metadata whose names begin with `$` stay, except those named here; 8 at most.',
    },
  }),
  Redaction: documentOf<RedactionDocument>({
    stream: TEXT,
    events: arrayOf(
      documentOf<RedactedEventDocument>({
        number: COUNT,
        id: UUID,
        type: TEXT,
        position: { ...COUNT, description: 'Of its record in the log.' },
        dataBytes: COUNT,
        metadataBytes: COUNT,
        wasRedacted: { ...BOOLEAN, description: 'It had been redacted before.' },
      }),
    ),
    position: {
      type: ['integer', 'null'],
      minimum: 0,
      description:
        'Of the last mark in the log; null if none was written. A scavenge that starts later removes the content.',
    },
    remains: { ...TEXT, description: 'What is left of the content, and until when.' },
  }),
};

export const REDACTION_DOCS = {
  redact: {
    summary: 'Redact single events',
    description:
      'The events read as empty at once, everywhere, and keep number, id and type; the next scavenge removes their content from the files. This cannot be undone. Each is recorded in the stream `$redactions`. In a cluster any member takes the request.',
    parameters: [
      query('preview', 'Only show which events it would take; changes nothing.', { ...BOOLEAN, default: false }, true),
    ],
    body: {
      required: true,
      content: json(ref('RedactionWanted'), { stream: 'orders-42', events: [3], reason: 'card number' }),
    },
    responses: {
      200: ok('They are redacted.', json(ref('Redaction'))),
      ...problems(400, 404, 406, 410, 413, 415, 507),
      409: failing(
        'An event cannot be redacted (`not_redactable`): tombstones, parts of explicit transactions and the events of streams whose names begin with `$`. Or there are a million marks (`redactions_full`).',
      ),
    },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
