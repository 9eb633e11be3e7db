/**
 * Findings of the second review about hosts, certificates, TLS and the terminal: the request that showed each, and what
 * became of it.
 */
const TEST = 'test/hardening/edge-hosts.test.ts';

export const EDGE_HOST_ROWS = [
  {
    finding: '35 N1',
    request:
      'POST, GET and POST /admin/shutdown with Host: evil.example.com at --insecure, as a page whose name was pointed at 127.0.0.1 sends them',
    before: 'written, read, and the node stops',
    now: '421 foreign_host, which names AllowedHosts, before anything is looked at',
    test: TEST,
  },
  {
    finding: '35 N1',
    request: 'all that the page of the node may ask, by such a page in a real browser',
    before: 'done',
    now: '421',
    test: 'test/ui/foreign.long.test.ts',
  },
  {
    finding: '35 N1',
    request: 'the same where admin has the default password',
    before: 'a login with it makes an administrator',
    now: '421 until both default users have passwords of their own',
    test: TEST,
  },
  {
    finding: '35 N1',
    request: 'the same with X-Forwarded-Host: localhost, and with Skua-Forwarded',
    before: 'written',
    now: '421: the raw Host counts, and what a named proxy says in X-Forwarded-Host counts beside it',
    test: TEST,
  },
  {
    finding: '35 N1',
    request: 'POST /webhook/{connector} under a foreign name',
    before: '202',
    now: '421 with its text, but for connectors that check a signature; /health answers whoever asks',
    test: TEST,
  },
  {
    finding: '35 N1',
    request: 'a request that a member passes on',
    before: 'with the Host of the client',
    now: 'with the address of the member that it goes to; routing scripts see the host of the client as before',
    test: 'test/cluster/forward/outcomes.test.ts',
  },
  {
    finding: '35 N1',
    request: '--insecure beyond the loopback',
    before: 'a warning at the start',
    now: 'one an hour, too, and an error in the page',
    test: TEST,
  },
  {
    finding: '35 12',
    request: 'a member whose certificate is for servers alone, with the ClusterSecret, over TLS',
    before: '401: certificates alone counted with TLS',
    now: 'the system user; the secret is sent to members whose certificate was verified',
    test: TEST,
  },
  {
    finding: '35 12',
    request: 'a reload, or a start, with a certificate for clients alone, or whose key signs certificates alone',
    before: 'in force, and no client takes it',
    now: '409 with file and reason; the start ends with them',
    test: 'test/local/tls/load-certificates.test.ts',
  },
  {
    finding: '35 H1',
    request: 'TLS 1.2 with AES128-SHA, AES256-GCM-SHA384 (RSA key exchange) or ECDHE-RSA-AES128-SHA (CBC)',
    before: 'spoken',
    now: 'refused',
    test: 'test/local/tls/server.test.ts',
  },
  {
    finding: '35 H1',
    request: 'GET of anything over TLS with --hsts-max-age',
    before: 'no such option',
    now: 'Strict-Transport-Security, but under loopback names',
    test: TEST,
  },
  {
    finding: '35 T1',
    request:
      'skua explain of a stream whose name or metadata has U+009B, ESC or a bidi override, and a table, an error, a bar with them',
    before: 'raw, and the terminal obeys',
    now: '\\u009b: what a command writes goes through one writer; its own cursor moves go beside it',
    test: TEST,
  },
  {
    finding: '35 T1',
    request: 'the same with --json, and in lines of the log',
    before: 'U+009B and bidi overrides raw',
    now: 'escaped, and the same JSON',
    test: TEST,
  },
] as const;
