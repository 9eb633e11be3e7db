/** Rows of the table of findings: bytes of pages, replies and uploads. */
const SERVED = 'test/hardening/bytes.long.test.ts';
const PAGES = 'test/hardening/page-bytes.test.ts';

export const BYTES = [
  {
    finding: '3',
    request: 'GET /streams/x/head/backward/4096 of 600 events of 3 MiB, without embed',
    before: 'an answer under 1 MiB that took 2 GB',
    now: 'the payloads are not kept; at most 256 MiB are looked at for one page',
    test: PAGES,
  },
  {
    finding: '3',
    request:
      'GET /streams/x/head/backward/4096?embed=body of large events, of a stream and of $all, with links and filters',
    before: 'all of them together in memory, then 400 page_too_large',
    now: 'a page of MaxReadPageBytes, and a link to exactly the first event that is missing',
    test: SERVED,
  },
  {
    finding: '3',
    request: '20 connections that ask for server-sent events of 3 MiB and take nothing',
    before: '8 GB in ten seconds, and more after they had left',
    now: 'one block each, within MaxReplyBytesInFlight; nothing once they have left',
    test: SERVED,
  },
  {
    finding: '3',
    request: 'a connection that asks for NDJSON or server-sent events and takes nothing, for ever',
    before: 'it held its pages for ever',
    now: 'it is cut off after ClientStallTimeout',
    test: SERVED,
  },
  {
    finding: '3',
    request: 'pages of large events by more clients than there is room for; then a small read',
    before: 'as much memory as they asked for',
    now: 'they wait in the order of coming, then 503 with Retry-After; the small read has its reserve',
    test: SERVED,
  },
  {
    finding: '3',
    request: '20 requests that declare 30 MB and send nothing',
    before: 'nothing counted',
    now: 'nothing is counted that has not arrived',
    test: SERVED,
  },
  {
    finding: '3',
    request: 'six requests with 30 MB each, half-way at once',
    before: '180 MB, and without a limit for more of them',
    now: 'bodies are not read on beyond MaxUploadBytesInFlight; one always ends; small ones go on',
    test: SERVED,
  },
  {
    finding: '3',
    request: 'random takers and givers of one budget',
    before: 'there was no budget',
    now: 'nothing is lost, nobody waits for ever',
    test: 'test/hardening/byte-budget.test.ts',
  },
] as const;
