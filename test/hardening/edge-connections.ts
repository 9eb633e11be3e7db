/** Findings of strangers about connections: the bytes that showed each, and what became of it. */
const TEST = 'test/local/edge/connections.test.ts';

export const EDGE_CONNECTION_ROWS = [
  { finding: '35 C1', request: 'the preface of HTTP/2, SETTINGS, GET /ping and a frame that breaks the connection, in one write', before: 'the process ends', now: 'the connection ends', test: TEST },
  { finding: '35 C2', request: 'GET /ping and pipelined behind it GET /cluster/frames with Upgrade: skua-frames', before: 'the process ends', now: 'the connection ends behind the answer to the first', test: TEST },
  { finding: '35 C3', request: 'nothing for 20 s, and then a close or reset', before: 'the process ends', now: 'nothing, or 408', test: TEST },
  { finding: '35 C', request: 'anything that throws in a listener, callback or timer of a connection', before: 'the process ends', now: 'the stream or connection ends; counted and logged', test: 'test/local/edge/guard.test.ts' },
  { finding: '35 C', request: 'the preface of HTTP/2 without TLS, and a close in the same breath', before: 'the connection is held until a ping is not answered, for 22 s', now: 'it ends at once', test: TEST },
  { finding: '35 C', request: 'a long poll, behind it a part of a request, and then the end', before: 'the connection is held until the long poll ends; that of a subscription for ever', now: 'it ends at once', test: TEST },
  { finding: '35 C', request: 'a request of HTTP/2 over TLS, and a reset while it is answered', before: 'the connection is held for ever', now: 'until a ping is not answered', test: TEST },
] as const;
