/** Findings of strangers about connections: the bytes that showed each, and what became of it. */
const TEST = 'test/local/edge/connections.test.ts';

export const EDGE_CONNECTION_ROWS = [
  {
    finding: '35 C1',
    request: 'the preface of HTTP/2, SETTINGS, GET /ping and a frame that breaks the connection, in one write',
    before: 'the process ends',
    now: 'the connection ends',
    test: TEST,
  },
  {
    finding: '35 C2',
    request: 'GET /ping and pipelined behind it GET /cluster/frames with Upgrade: skua-frames',
    before: 'the process ends',
    now: 'the connection ends behind the answer to the first',
    test: TEST,
  },
  {
    finding: '35 C3',
    request: 'nothing for 20 s, and then a close or reset',
    before: 'the process ends',
    now: 'nothing, or 408',
    test: TEST,
  },
  {
    finding: '35 C',
    request: 'anything that throws in a listener, callback or timer of a connection',
    before: 'the process ends',
    now: 'the stream or connection ends; counted and logged',
    test: 'test/local/edge/guard.test.ts',
  },
  {
    finding: '35 C',
    request: 'the preface of HTTP/2 without TLS, and a close in the same breath',
    before: 'the connection is held until a ping is not answered, for 22 s',
    now: 'it ends at once',
    test: TEST,
  },
  {
    finding: '35 C',
    request: 'a long poll, behind it a part of a request, and then the end',
    before: 'the connection is held until the long poll ends; that of a subscription for ever',
    now: 'it ends at once',
    test: TEST,
  },
  {
    finding: '35 C',
    request: 'a request of HTTP/2 over TLS, and a reset while it is answered',
    before: 'the connection is held for ever',
    now: 'until a ping is not answered',
    test: TEST,
  },
  {
    finding: '35 C',
    request: 'a connection of HTTP/2 over TLS that breaks the rules, and a reset',
    before: 'it is held for ever',
    now: 'until it is looked at next',
    test: TEST,
  },
  {
    finding: '35 C',
    request: "a request for a member's connection behind a long poll, and then the end",
    before: 'the process ends',
    now: 'the connection ends at once',
    test: TEST,
  },
  {
    finding: '35 C',
    request: 'subscriptions pipelined in front of an upgrade or CONNECT, and a reset',
    before: 'they go on for ever',
    now: 'they end with the connection',
    test: 'test/local/http/request-pipeline.test.ts',
  },
  {
    finding: '35 M1',
    request: '350 connections with 2 600 small requests each behind a reply that nobody takes',
    before: '/ping waits for 30 s, 1 GiB',
    now: '16 MiB of pipelined requests, by address; /ping 0.3 s',
    test: 'test/local/http/request-pipeline.test.ts',
  },
  {
    finding: '35 A1',
    request: '15 000 silent calls with 31 kB of headers',
    before: '860 MB',
    now: 'headers beyond 2 KiB count by address, 64 MiB in all',
    test: 'test/local/grpc/shared-limits.test.ts',
  },
] as const;
