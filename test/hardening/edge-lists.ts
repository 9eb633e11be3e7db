/**
 * Rows of the table of findings: what access lists keep from operators and connectors, and which users and groups there
 * are.
 */
const LISTS = 'test/hardening/lists.test.ts';
const INGEST = 'test/webhook/ingest/access.test.ts';

export const EDGE_LISTS = [
  {
    finding: '35 X1',
    request: 'GET /admin/scavenge/explain/{stream} as a member of $ops whom $mr or $r denies',
    before: 'the metadata, and how many events there are',
    now: '403',
    test: LISTS,
  },
  {
    finding: '35 X1',
    request: 'the same of a stream that was deleted for ever, with its list',
    before: 'what is left of its metadata',
    now: 'no metadata: none is in force',
    test: LISTS,
  },
  {
    finding: '35 X1',
    request: 'POST /admin/erasure with such a stream, and GET of a proof that somebody else began',
    before: 'how many events there are, and where they lie',
    now: '403; left out of the list',
    test: LISTS,
  },
  {
    finding: '35 X1',
    request: 'POST /admin/erasure with the id of an event of such a stream',
    before: 'the name of the stream, and its number there',
    now: 'the finding is left out, and counted as hidden',
    test: LISTS,
  },
  {
    finding: '35 X1',
    request:
      'every operation over HTTP, and the methods of gRPC, with the name of such a stream, of its metadata, and of one that links to it',
    before: 'the three above',
    now: 'nothing of it is shown, and nothing of it changes',
    test: LISTS,
  },
  {
    finding: '35 X2',
    request: 'POST /webhook/{id} whose script names a stream with a $w that names neither the connector nor everybody',
    before: '202: written as the system user',
    now: '500 as for an invalid stream; the reason is in the rejections',
    test: INGEST,
  },
  {
    finding: '35 X2',
    request: 'the same, where the list is written between a 202 and the event',
    before: 'written',
    now: 'not written, and noted as a loss',
    test: INGEST,
  },
  {
    finding: '35 X2',
    request:
      'the same where the defaults in $settings deny it, in a function, and after an earlier delivery of the same id',
    before: 'written',
    now: '500',
    test: INGEST,
  },
  {
    finding: '35 X2',
    request: 'POST /connectors/{id}/test with a script that names such a stream',
    before: 'routed',
    now: 'failed, with the reason',
    test: INGEST,
  },
  {
    finding: '35 P1',
    request: 'GET /subscriptions/viewparkedmessages/a/b::c/head/backward/5',
    before: 'what group c of a::b has parked, for who may read a',
    now: '404',
    test: LISTS,
  },
  {
    finding: '35 P1',
    request: 'PUT /subscriptions/a/b::c beside group c of a::b',
    before: '409: it exists, and then it does not',
    now: '400, which names the group that has the same streams',
    test: 'test/persistent/engine.test.ts',
  },
  {
    finding: '35 E1',
    request: 'ChangePassword of gRPC for a user that there is not',
    before: 'user-not-found, at once',
    now: 'access-denied as for a wrong password, after as long and as often',
    test: 'test/security/user-accounts.test.ts',
  },
] as const;
