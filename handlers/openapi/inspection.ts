import { arrayOf, BOOLEAN, COUNT, json, object, ok, problems, query, ref, TEXT } from './parts.ts';
import type { OperationDoc, Schema } from '../http/route.ts';

/** The OpenAPI document of what shows a node from inside: its files, names of streams, its log, and how it is. */

export const INSPECTION_SCHEMAS: Readonly<Record<string, Schema>> = {
  ChunkMap: object({
    version: { type: 'string', description: 'Of the set of files, for `since`. It stays while the file that is being written grows.' }, chunkSize: { ...COUNT, description: 'Bytes of log that a logical chunk holds.' },
    logEnd: { ...COUNT, description: 'Position in the log.' },
    chunks: { anyOf: [{ type: 'null' }, arrayOf(ref('ChunkFile'))], description: 'In log order; null where `since` is the version that holds.' },
  }),
  ChunkFile: object({
    file: TEXT, start: { ...COUNT, description: 'First logical chunk.' }, end: { ...COUNT, description: 'Last logical chunk: a merged file holds several.' }, startPosition: COUNT, endPosition: COUNT,
    bytes: { ...COUNT, description: 'Of the file.' }, dataBytes: { ...COUNT, description: 'Of the records in it.' }, isOngoing: { ...BOOLEAN, description: 'It is being written.' }, isScavenged: BOOLEAN,
    isCold: { ...BOOLEAN, description: 'It is an object in object storage.' }, records: { type: ['integer', 'null'], minimum: 0, description: 'Known of scavenged files only.' },
  }),
};

export const CHUNK_MAP_DOC: OperationDoc = {
  summary: 'The chunk files of the log', description: 'From memory, so that it may be asked again and again. What a scavenge would remove of each file, a dry run says.',
  parameters: [query('since', 'The version of an earlier answer: the files are left out while it holds.', TEXT, '3f0c9a1e-7')],
  responses: { 200: ok('The files.', json(ref('ChunkMap'))), ...problems(400, 406) },
};
