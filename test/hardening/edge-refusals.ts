/** Rows of the table of findings: who may do nothing is refused at the headers, and holds nothing. */

export const EDGE_REFUSALS = [
  {
    finding: '35 A2',
    request: 'gRPC Append or BatchAppend without a login, with the beginning of a message of 1 MB',
    before: 'the message was read first, and counted among those of all callers',
    now: 'ends with access-denied at the headers, before the first message',
    test: 'test/local/grpc/refused.test.ts',
  },
  {
    finding: '35 A2',
    request: 'BatchAppend without a login',
    before: 'each append was answered by itself, and the call went on for as long as the client liked',
    now: 'the call ends with access-denied where the anonymous caller may use no stream',
    test: 'test/hardening/refused-at-headers.test.ts',
  },
  {
    finding: '35 A2',
    request:
      'any operation at a member that does not lead, without a login, with a wrong one or without the role, and a body that does not arrive',
    before: 'the body was held until it was whole, since the leader authenticates',
    now: '401 or 403 at the headers, by the copy of this member',
    test: 'test/hardening/refused-at-headers.test.ts',
  },
  {
    finding: '35 A2',
    request:
      'any call of gRPC for the leader at a member that does not lead, with a wrong login and a message that does not arrive',
    before: 'the messages were held until the half-close',
    now: 'UNAUTHENTICATED at the headers',
    test: 'test/hardening/refused-at-headers.test.ts',
  },
  {
    finding: '35 A2',
    request: 'a user, or a group of his, that was made at another member a moment ago',
    before: 'the leader knew',
    now: 'the member reads up to the end of the log before it refuses him, once a second and for a second at most',
    test: 'test/cluster/forward/refusals.test.ts',
  },
  {
    finding: '35 A2',
    request: 'POST /webhook/{no connector} at a member that does not lead',
    before: 'the body was read, under the name "undefined", and passed on',
    now: '404 before the body, once the member has looked',
    test: 'test/cluster/forward/webhooks.test.ts',
  },
  {
    finding: '35 A2',
    request: 'POST with a body of 30 MB and a wrong login, over HTTP/1.1',
    before: 'all of it was read and dropped, however long it was',
    now: 'the answer, Connection: close, at most 1 MiB and two seconds of the rest',
    test: 'test/local/http/rest-of-body.test.ts',
  },
  {
    finding: '35 A2',
    request: 'bodies of POST /ui/session that do not arrive',
    before: 'as many as there are connections',
    now: '32 of an address, then 503',
    test: 'test/handlers/ui/ui-session.test.ts',
  },
] as const;
