/** Rows of the table of findings at the edge: what sizes of requests and replies cost. */
const MESSAGES = 'test/grpc/messages.test.ts';
const LINKS = 'test/handlers/streams/read-events.test.ts';
const ROOM = 'test/handlers/http/room.test.ts';
const PIPELINE = 'test/local/http/request-pipeline.test.ts';
const SHARED = 'test/local/http/response-compression.test.ts';
const BATCH = 'test/handlers/grpc/streams/batch-append.test.ts';

export const EDGE_SIZES = [
  {
    finding: '35 M1',
    request: '58 kB of GET /openapi.json, pipelined over one connection, without a login',
    before: '1 GiB of memory and 2.5 s of the loop',
    now: 'one compact buffer for all replies, compressed once, counted for none',
    test: SHARED,
  },
  {
    finding: '35 M1',
    request: '5 000 requests in one write',
    before: 'all of them worked on at once',
    now: 'eight; the others of the same read wait in a queue, and the connection is paused',
    test: PIPELINE,
  },
  {
    finding: '35 M1',
    request: 'GET of lists (users, streams, chunks, groups, metrics …) by more clients than there is room for',
    before: 'each was made, then counted without waiting',
    now: 'each waits for room before it is made, then 503 with Retry-After',
    test: ROOM,
  },
  {
    finding: '35 M3',
    request: 'GET of a page of 4 096 events with X-Forwarded-Prefix of 1 000 characters',
    before: '14.5 MB of links for a request of 1 kB',
    now: 'a prefix of more than 100 characters, or a host of more than 255, is no such thing',
    test: LINKS,
  },
  {
    finding: '35 M3',
    request: 'GET of a page of 4 096 events of a stream, or of $all, whose names become 9 000 characters in links',
    before: '113 MB of links',
    now: 'they count in MaxReadPageBytes: the page ends early and leads on',
    test: LINKS,
  },
  {
    finding: '35 M2',
    request: 'BatchAppend, AppendSession: a message of 1 MB that holds 524 000 empty records',
    before: 'the node stood still for 0.5 s; eight of them at a time, 6 s',
    now: 'INVALID_ARGUMENT at the first element too many: at most one for 16 bytes beyond the first 1 024',
    test: MESSAGES,
  },
  {
    finding: '35 M2',
    request: 'CreateUser with 10 000 groups, Read with 10 000 prefixes',
    before: 'all of them decoded, then refused',
    now: 'INVALID_ARGUMENT at the 1 025th',
    test: MESSAGES,
  },
  {
    finding: '35 M2',
    request: 'BatchAppend, AppendSession: events for a stream that the caller may not write to',
    before: 'decoded, then refused',
    now: 'passed over: only the name of the stream is decoded',
    test: BATCH,
  },
] as const;
