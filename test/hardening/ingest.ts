/** Rows of the table of findings: webhooks, connectors, functions. */
export const INGEST_FINDINGS = [
  {
    finding: '4', request: '256 connections, each with POST /webhook/{id}, Content-Length 1048576 and no body; then a genuine call',
    before: 'the declared lengths held all room for 30 s: 503 for every sender', now: 'only what has arrived counts: 202', test: 'test/local/webhook/silent-senders.test.ts',
  },
  {
    finding: '4', request: 'more bodies than one connector, one address or the node has room for, silent or dripping; then a genuine call',
    before: '503 for whoever came last', now: 'who lags most behind 64 KiB a second is ended with 408; the genuine call is 202', test: 'test/handlers/connectors/webhook.test.ts',
  },
  {
    finding: '4', request: 'bodies at random from several addresses to several connectors, beyond every limit',
    before: 'one total of declared bytes', now: 'bytes and number hold for the node, each connector and each address, and nothing is left behind', test: 'test/webhook/ingest/arrivals.test.ts',
  },
  {
    finding: '6', request: 'a call that the routing script of a connector sends to a stream which its setting streams does not name',
    before: '202: written as the system user', now: '500, with the reason in log, metric (refused-stream) and rejections', test: 'test/webhook/ingest/ingest.test.ts',
  },
  {
    finding: '6', request: 'POST /connectors/{id} without signature and without streams',
    before: '200 {}', now: '200 {"warnings": [...]}, and a line in the log', test: 'test/handlers/connectors/connectors.test.ts',
  },
  {
    finding: '11', request: 'wrong passwords for one user, sent to many instances of a function in turn',
    before: 'ten a minute for each instance', now: 'ten a minute in all, and one more for each instance', test: 'test/shared-log/shared-failures.test.ts',
  },
  {
    finding: '11', request: 'reading the configuration of a function',
    before: 'shows passwords and the data-protection token', now: 'shows names of secrets; each function may read those that it needs', test: 'test/aws/stack.long.test.ts',
  },
  {
    finding: '11', request: 'a cold start of each function', before: 'all had both passwords in their environment',
    now: 'webhook reads the token, streams and admin the passwords while their users are not made yet, the tick the key of backups', test: 'test/aws/runtime.long.test.ts',
  },
  {
    finding: '11', request: 'a flood of calls to the public address of one function',
    before: 'took the concurrency of the account', now: 'reserved concurrency: 50 for streams and webhook, 10 for admin', test: 'test/aws/stack.long.test.ts',
  },
  {
    finding: 'users', request: 'POST /webhook/{id} with an Authorization header that is no login of the node',
    before: '401', now: 'not looked at, as in functions', test: 'test/handlers/connectors/webhook.test.ts',
  },
  {
    finding: 'users', request: 'POST /webhook/{id} while the node is busy, starting, or can not write', before: '503 without Retry-After, with a body while the node started',
    now: '503 with Retry-After and no body', test: 'test/handlers/node/health.test.ts',
  },
] as const;
