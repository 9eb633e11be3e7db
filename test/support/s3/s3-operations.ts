import { createHash } from 'node:crypto';
import { crc32Text, decodeAwsChunked } from './aws-chunked.ts';

export interface S3Request {
  readonly method: string;
  readonly bucket: string;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

export interface S3Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
}

interface Stored {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly modified: Date;
  readonly metadata: Readonly<Record<string, string>>;
}
interface Upload {
  readonly begun: Date;
  readonly bucket: string;
  readonly key: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly parts: Map<number, { bytes: Buffer; etag: string }>;
}

export interface S3State {
  readonly buckets: Map<string, Map<string, Stored>>;
  /** Large uploads that were begun and neither completed nor aborted. */
  readonly uploads: Map<string, Upload>;
  uploadsBegun: number;
}

/** An answer that is an error, as S3 words it. */
export function errorReply(status: number, code: string, headers: Record<string, string> = {}, more = ''): S3Reply {
  return {
    status,
    headers,
    body: `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code} by the test server</Message>${more}</Error>`,
  };
}

/** Performs one request. It is synchronous, so requests take effect one after the other. */
export function performS3(state: S3State, request: S3Request): S3Reply {
  const { method, bucket, key, query } = request;
  if (method === 'PUT' && key === '') return createBucket(state, bucket);
  const objects = state.buckets.get(bucket);
  if (objects === undefined) return errorReply(404, 'NoSuchBucket');
  if (key === '') {
    if (method === 'HEAD') return { status: 200 };
    if (method === 'GET' && query.get('list-type') === '2') return list(objects, query);
    if (method === 'GET' && query.has('uploads')) return listUploads(state, bucket, query.get('prefix') ?? '');
    if (method === 'POST' && query.has('delete')) return removeMany(objects, request);
    return errorReply(501, 'NotImplemented');
  }
  const uploadId = query.get('uploadId');
  if (method === 'POST' && query.has('uploads')) return beginUpload(state, request);
  if (uploadId !== null) return inUpload(state, objects, request, uploadId);
  switch (method) {
    case 'PUT':
      return put(objects, request);
    case 'GET':
    case 'HEAD':
      return get(objects, request);
    case 'DELETE':
      objects.delete(key);
      return { status: 204 };
    default:
      return errorReply(501, 'NotImplemented');
  }
}

function createBucket(state: S3State, bucket: string): S3Reply {
  if (state.buckets.has(bucket)) return errorReply(409, 'BucketAlreadyOwnedByYou');
  state.buckets.set(bucket, new Map());
  return { status: 200 };
}

function put(objects: Map<string, Stored>, request: S3Request): S3Reply {
  const body = contentOf(request);
  if ('status' in body) return body;
  if (request.headers['if-none-match'] === '*' && objects.has(request.key))
    return errorReply(412, 'PreconditionFailed');
  const etag = `"${md5(body.bytes)}"`;
  objects.set(request.key, { bytes: body.bytes, etag, modified: new Date(), metadata: metadataOf(request) });
  return { status: 200, headers: { etag } };
}

function get(objects: Map<string, Stored>, { key, headers }: S3Request): S3Reply {
  const object = objects.get(key);
  if (object === undefined) return errorReply(404, 'NoSuchKey');
  const { bytes } = object;
  const common = {
    etag: object.etag,
    'last-modified': object.modified.toUTCString(),
    'accept-ranges': 'bytes',
    ...object.metadata,
  };
  const range = /^bytes=(\d+)-(\d*)$/.exec(String(headers['range'] ?? ''));
  if (range === null) return { status: 200, headers: common, body: bytes };
  const from = Number(range[1]);
  if (from >= bytes.length) return errorReply(416, 'InvalidRange');
  const to = range[2] === '' ? bytes.length - 1 : Math.min(Number(range[2]), bytes.length - 1);
  return {
    status: 206,
    headers: { ...common, 'content-range': `bytes ${from}-${to}/${bytes.length}` },
    body: bytes.subarray(from, to + 1),
  };
}

function list(objects: Map<string, Stored>, query: URLSearchParams): S3Reply {
  const prefix = query.get('prefix') ?? '';
  const after = query.get('continuation-token') ?? query.get('start-after') ?? '';
  const max = Math.min(Number(query.get('max-keys') ?? 1_000), 1_000);
  const keys = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
  const page = keys.slice(0, max);
  const isMore = keys.length > page.length;
  const contents = page.map((key) => {
    const { bytes, etag, modified } = objects.get(key)!;
    return `<Contents><Key>${escape(key)}</Key><LastModified>${modified.toISOString()}</LastModified><ETag>${escape(etag)}</ETag><Size>${bytes.length}</Size></Contents>`;
  });
  const next = isMore ? `<NextContinuationToken>${escape(page.at(-1)!)}</NextContinuationToken>` : '';
  return xml(
    `<ListBucketResult><IsTruncated>${isMore}</IsTruncated><KeyCount>${page.length}</KeyCount><MaxKeys>${max}</MaxKeys>${next}${contents.join('')}</ListBucketResult>`,
  );
}

function removeMany(objects: Map<string, Stored>, request: S3Request): S3Reply {
  const body = contentOf(request);
  if ('status' in body) return body;
  const keys = [...body.bytes.toString().matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => unescape(key!));
  if (keys.length === 0 || keys.length > 1_000) return errorReply(400, 'MalformedXML');
  for (const key of keys) objects.delete(key);
  return xml('<DeleteResult></DeleteResult>');
}

function beginUpload(state: S3State, request: S3Request): S3Reply {
  const id = `upload-${++state.uploadsBegun}`;
  state.uploads.set(id, {
    begun: new Date(),
    bucket: request.bucket,
    key: request.key,
    metadata: metadataOf(request),
    parts: new Map(),
  });
  return xml(
    `<InitiateMultipartUploadResult><Bucket>${request.bucket}</Bucket><Key>${escape(request.key)}</Key><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
  );
}

function listUploads(state: S3State, bucket: string, prefix: string): S3Reply {
  const uploads = [...state.uploads].filter(([, upload]) => upload.bucket === bucket && upload.key.startsWith(prefix));
  const listed = uploads.map(
    ([id, { key, begun }]) =>
      `<Upload><Key>${escape(key)}</Key><UploadId>${id}</UploadId><Initiated>${begun.toISOString()}</Initiated></Upload>`,
  );
  return xml(
    `<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>${listed.join('')}</ListMultipartUploadsResult>`,
  );
}

function inUpload(state: S3State, objects: Map<string, Stored>, request: S3Request, id: string): S3Reply {
  const upload = state.uploads.get(id);
  if (upload === undefined || upload.key !== request.key) return errorReply(404, 'NoSuchUpload');
  if (request.method === 'DELETE') {
    state.uploads.delete(id);
    return { status: 204 };
  }
  const body = contentOf(request);
  if ('status' in body) return body;
  if (request.method === 'PUT') {
    const etag = `"${md5(body.bytes)}"`;
    upload.parts.set(Number(request.query.get('partNumber')), { bytes: body.bytes, etag });
    return { status: 200, headers: { etag, 'x-amz-checksum-crc32': crc32Text(body.bytes) } };
  }
  return completeUpload(state, objects, upload, id, body.bytes.toString());
}

function completeUpload(
  state: S3State,
  objects: Map<string, Stored>,
  upload: Upload,
  id: string,
  body: string,
): S3Reply {
  const named = [...body.matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part]) => ({
    number: Number(/<PartNumber>(\d+)</.exec(part!)?.[1]),
    etag: unescape(/<ETag>([^<]*)</.exec(part!)?.[1] ?? ''),
  }));
  const parts = named.map(({ number, etag }) => {
    const part = upload.parts.get(number);
    return part?.etag === etag ? part : undefined;
  });
  if (parts.length === 0 || parts.includes(undefined)) return errorReply(400, 'InvalidPart');
  if (named.some(({ number }, n) => n > 0 && number <= named[n - 1]!.number))
    return errorReply(400, 'InvalidPartOrder');
  if (parts.slice(0, -1).some((part) => part!.bytes.length < 5 * 1_048_576)) return errorReply(400, 'EntityTooSmall');
  const bytes = Buffer.concat(parts.map((part) => part!.bytes));
  const etag = `"${md5(bytes)}-${parts.length}"`;
  objects.set(upload.key, { bytes, etag, modified: new Date(), metadata: upload.metadata });
  state.uploads.delete(id);
  return xml(
    `<CompleteMultipartUploadResult><Key>${escape(upload.key)}</Key><ETag>${escape(etag)}</ETag></CompleteMultipartUploadResult>`,
  );
}

/** The body without its framing; an error where it does not fit its length or checksum. */
function contentOf({ headers, body }: S3Request): { readonly bytes: Buffer } | S3Reply {
  const isFramed = String(headers['x-amz-content-sha256'] ?? '').startsWith('STREAMING-');
  const { bytes, trailers } = isFramed ? decodeAwsChunked(body) : { bytes: body, trailers: {} };
  const announced = headers['x-amz-decoded-content-length'];
  if (announced !== undefined && Number(announced) !== bytes.length) return errorReply(400, 'IncompleteBody');
  const checksum = headers['x-amz-checksum-crc32'] ?? (trailers as Record<string, string>)['x-amz-checksum-crc32'];
  if (checksum !== undefined && checksum !== crc32Text(bytes)) return errorReply(400, 'BadDigest');
  return { bytes };
}

function metadataOf({ headers }: S3Request): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => name.startsWith('x-amz-meta-'))
      .map(([name, value]) => [name, String(value)]),
  );
}

function xml(body: string): S3Reply {
  return {
    status: 200,
    headers: { 'content-type': 'application/xml' },
    body: `<?xml version="1.0" encoding="UTF-8"?>${body}`,
  };
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

function unescape(text: string): string {
  return text.replaceAll('&quot;', '"').replaceAll('&gt;', '>').replaceAll('&lt;', '<').replaceAll('&amp;', '&');
}

function md5(bytes: Uint8Array): string {
  return createHash('md5').update(bytes).digest('hex');
}
