/** Rows of the table of findings: what of JSON becomes longer, or takes longer, than it should. */
const JSON_TESTS = 'test/hardening/edge-json.test.ts';

export const EDGE_JSON = [
  {
    finding: '35 J1',
    request: 'POST /streams/s with an event of 3.8 MB whose numbers lie under 60 arrays',
    before: '4.1 s in which nothing else was done, then 413, of 16 MB 500',
    now: 'it is stored as it was sent, in slices of 128 KiB',
    test: JSON_TESTS,
  },
  {
    finding: '35 J1',
    request: 'POST /streams/s with 2 000 events of 1 kB, each of which would grow to 40 kB',
    before: '80 MB are stored',
    now: 'not more than 8 times the body and 1 MiB',
    test: JSON_TESTS,
  },
  {
    finding: '35 J1',
    request: 'POST /streams/s with 16 MB in a member that is not stored',
    before: 'all of it is written, indented, and thrown away: 500',
    now: 'it is passed over',
    test: JSON_TESTS,
  },
  {
    finding: '35 J2',
    request:
      'GET /streams/s/0 of a stored event of 3.8 MB whose numbers lie under 60 arrays, in any form; a page with it, with any embed',
    before: '252 MB, in 2.5 s and 900 MiB',
    now: 'its data is sent as it is stored, in slices',
    test: JSON_TESTS,
  },
  {
    finding: '35 J2',
    request: 'GET /streams/s/head/backward/2000?embed=pretty of events of 1 kB that grow to 40 kB',
    before: '80 MB',
    now: 'not more than 8 times the events and 1 MiB beside what surrounds them',
    test: JSON_TESTS,
  },
  {
    finding: '35 J2',
    request: 'any request that is refused with a text that quotes it',
    before: 'the text is as long as what it quotes',
    now: '8 192 characters at most, in answers of HTTP and gRPC and in the log',
    test: JSON_TESTS,
  },
  {
    finding: '35 J2',
    request: 'BatchAppend: an append that is kept open with a stream name of 16 MB, and small chunks with a mistake',
    before: 'each of them is answered with the 16 MB of the name',
    now: 'the first chunk is refused',
    test: 'test/handlers/grpc/streams/batch-append.test.ts',
  },
  {
    finding: '35 8',
    request: 'twenty uploads of 29 MB at once, and a small read',
    before: 'the read waits for 4.7 s',
    now: 'bodies beyond 256 KiB are taken apart in slices of some milliseconds, one in each turn of the process, whoever sent them',
    test: JSON_TESTS,
  },
  {
    finding: '35 8',
    request: 'GET of a page of 8 MB with embed=pretty by many at once',
    before: 'each is made in one stretch',
    now: 'made in slices, and counted among the replies under way while it grows',
    test: JSON_TESTS,
  },
] as const;
