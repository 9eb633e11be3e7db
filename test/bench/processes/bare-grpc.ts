import { readFileSync } from 'node:fs';
import { createSecureServer, createServer } from 'node:http2';
import type { Http2Server, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { writeSupportedMethods } from '../../../handlers/grpc/messages/server-features.ts';
import {
  readReadReq,
  StreamsService,
  writeAppendResp,
  writeBatchAppendResp,
  writeReadResp,
} from '../../../handlers/grpc/messages/streams.ts';
import { decode, frame, PREFIX_BYTES } from '../../../handlers/grpc/messages/wire.ts';
import { ServerFeaturesService } from '../../../handlers/grpc/messages/server-features.ts';
import { EVENT_DATA, EVENT_TYPES } from '../events.ts';

/**
 * The limit of everything over gRPC: node:http2 alone, frames by hand. Appends are answered at once with messages that
 * were made before, reads with events that were, and whoever subscribes gets such an event for each append. With a
 * folder as argument over TLS, with the certificate in it.
 */

/** Messages of a block that readers get, and the bytes at which node:http2 is asked to wait. */
const BLOCK_EVENTS = 128;
const STREAM = new TextEncoder().encode('bench-grpc-00');
const { Append, BatchAppend, Read } = StreamsService.methods;
const HEAD = { ':status': 200, 'content-type': 'application/grpc' };

const EVENT = Buffer.from(
  frame(
    {
      event: {
        event: {
          id: { text: '7c3f2a51-9d4e-4b0c-8a61-52f0c1d9e7aa', isStructured: false },
          streamIdentifier: { streamName: STREAM },
          streamRevision: 1_742,
          preparePosition: 88_412_907,
          commitPosition: 88_412_907,
          metadata: new Map([
            ['type', EVENT_TYPES[0]!],
            ['created', '17640012345678901'],
            ['content-type', 'application/json'],
          ]),
          customMetadata: new Uint8Array(0),
          data: EVENT_DATA,
        },
        commitPosition: 88_412_907,
      },
    },
    writeReadResp,
  ),
);
const BLOCK = Buffer.concat(Array.from({ length: BLOCK_EVENTS }, () => EVENT));
const APPENDED = Buffer.from(
  frame(
    { success: { currentRevision: 1_742, position: { commitPosition: 88_412_907, preparePosition: 88_412_907 } } },
    writeAppendResp,
  ),
);
/** An answer to an append of a batch call, without its correlation id, which comes first. */
const BATCH_APPENDED = Buffer.from(
  frame(
    {
      success: { currentRevision: 1_742, position: { commitPosition: 88_412_907, preparePosition: 88_412_907 } },
      streamIdentifier: { streamName: STREAM },
    },
    writeBatchAppendResp,
  ),
).subarray(PREFIX_BYTES);
const FEATURES = Buffer.from(
  frame(
    {
      methods: [Append, BatchAppend, Read].map(({ path }) => ({
        serviceName: StreamsService.name.toLowerCase(),
        methodName: path.slice(path.lastIndexOf('/') + 1).toLowerCase(),
        features: [],
      })),
      eventStoreServerVersion: '23.10.8',
    },
    writeSupportedMethods,
  ),
);
const SUBSCRIBED = Buffer.concat([
  frame({ confirmation: { subscriptionId: 'a' } }, writeReadResp),
  frame({ caughtUp: {} }, writeReadResp),
]);

const subscribers = new Set<ServerHttp2Stream>();

/** Ends a call with status OK, behind this. */
function finish(stream: ServerHttp2Stream, last: Buffer): void {
  stream.respond(HEAD, { waitForTrailers: true });
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(last);
}

/** Answers each message as soon as its correlation id is here, all of one piece together. */
function answerBatches(stream: ServerHttp2Stream): void {
  stream.respond(HEAD, { waitForTrailers: true });
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  let pending: Buffer = Buffer.alloc(0);
  let left = 0;
  stream.on('data', (piece: Buffer) => {
    const answers: Buffer[] = [];
    let bytes = pending.length === 0 ? piece : Buffer.concat([pending, piece]);
    pending = Buffer.alloc(0);
    for (;;) {
      const skipped = Math.min(left, bytes.length);
      left -= skipped;
      bytes = bytes.subarray(skipped);
      if (bytes.length === 0) break;
      const idEnd = PREFIX_BYTES + 2 + (bytes[PREFIX_BYTES + 1] ?? Number.POSITIVE_INFINITY);
      if (bytes.length < idEnd) {
        pending = bytes;
        break;
      }
      const id = bytes.subarray(PREFIX_BYTES, idEnd);
      const prefix = Buffer.alloc(PREFIX_BYTES);
      prefix.writeUInt32BE(id.length + BATCH_APPENDED.length, 1);
      answers.push(prefix, id, BATCH_APPENDED);
      left = PREFIX_BYTES + bytes.readUInt32BE(1);
    }
    if (answers.length === 0) return;
    stream.write(Buffer.concat(answers));
    for (const subscriber of subscribers)
      subscriber.write(
        answers.length === 3 ? EVENT : Buffer.concat(Array.from({ length: answers.length / 3 }, () => EVENT)),
      );
  });
  stream.on('end', () => stream.end());
}

/** Sends so many events, as fast as they are taken. */
function sendEvents(stream: ServerHttp2Stream, count: number): void {
  stream.respond(HEAD, { waitForTrailers: true });
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  let left = count;
  const pump = (): void => {
    while (left > 0) {
      const events = Math.min(left, BLOCK_EVENTS);
      left -= events;
      if (!stream.write(events === BLOCK_EVENTS ? BLOCK : BLOCK.subarray(0, events * EVENT.length)) && left > 0) {
        stream.once('drain', pump);
        return;
      }
    }
    stream.end();
  };
  pump();
}

function read(stream: ServerHttp2Stream, message: Buffer): void {
  const { options } = decode(message.subarray(PREFIX_BYTES), readReadReq);
  if (options?.count !== undefined) {
    sendEvents(stream, options.count);
    return;
  }
  stream.respond(HEAD);
  stream.write(SUBSCRIBED);
  subscribers.add(stream);
  stream.on('close', () => subscribers.delete(stream));
}

function answer(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  stream.on('error', () => {});
  const path = headers[':path'];
  if (path === BatchAppend.path) {
    answerBatches(stream);
    return;
  }
  const parts: Buffer[] = [];
  stream.on('data', (part: Buffer) => parts.push(part));
  stream.on('end', () => {
    if (path === Append.path) finish(stream, APPENDED);
    else if (path === ServerFeaturesService.methods.GetSupportedMethods.path) finish(stream, FEATURES);
    else read(stream, Buffer.concat(parts));
  });
}

const folder = process.argv[2];
const settings = { initialWindowSize: 131_072 };
const server: Http2Server =
  folder === undefined
    ? createServer({ settings })
    : createSecureServer({
        settings,
        cert: readFileSync(`${folder}/node.crt`),
        key: readFileSync(`${folder}/node.key`),
      });
server.on('session', (session) => session.setLocalWindowSize(1_048_576));
server.on('stream', answer);
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(
    `http${folder === undefined ? '' : 's'}://127.0.0.1:${(server.address() as AddressInfo).port}\n`,
  );
});
process.on('SIGTERM', () => process.exit(0));
