/** Rows of the table of findings: logins, trusted headers, TLS, paths and connections. */

export const LOGINS = [
  {
    finding: '5', request: 'ten wrong passwords for admin, sent through a proxy', before: 'admin was locked out for everybody behind that proxy', now: 'the client of TrustedProxies that guessed is locked out, others are not',
    test: 'test/local/http/hostile-clients.test.ts',
  },
  {
    finding: '5', request: 'ten wrong passwords from the address of a user who is logged in', before: 'the verified login was answered 429', now: 'a verified login and its connection go on, and so does a right password where the user has logged in before',
    test: 'test/security/authenticator.test.ts',
  },
  {
    finding: '5', request: '48 passwords at once from each of two addresses', before: 'all room was taken, and a third address was answered 503', now: 'addresses take turns, and who has less room gets that of who has most',
    test: 'test/security/passwords.test.ts',
  },
  {
    finding: '5', request: 'guesses from many addresses of one IPv6 network', before: 'ten for each address', now: 'ten for the network of /64', test: 'test/security/authenticator.test.ts',
  },
  {
    finding: '9', request: 'ES-TrustedAuth: kim; $admins from a client that is no proxy', before: 'an administrator, once EnableTrustedAuth was set', now: 'believed from TrustedProxies only, by the address of the connection; without them no start',
    test: 'test/local/http/hostile-clients.test.ts',
  },
  {
    finding: '9', request: 'Kurrent-TrustedAuth beside a proxy that knows ES-TrustedAuth only', before: 'an administrator', now: 'ignored: one name counts, TrustedAuthHeader', test: 'test/handlers/authentication.test.ts',
  },
  {
    finding: '9', request: 'the trusted header twice, the second by the client', before: 'its text became more groups', now: '401', test: 'test/handlers/authentication.test.ts',
  },
  {
    finding: '10', request: 'a client certificate of a public authority with the name of the node', before: 'the system user, by the default of TrustedRootCertificatesPath', now: 'nobody: only roots that were named prove a node',
    test: 'test/local/tls/server.test.ts',
  },
  {
    finding: '12', request: 'GET /x/../admin/scavenge, GET /x\\..\\ping', before: 'routed as /admin/scavenge', now: '404: paths are taken as they arrived', test: 'test/local/http/hostile-clients.test.ts',
  },
  {
    finding: '12', request: 'thousands of connections from one address', before: 'all 10 000 of the node', now: 'refused from MaxConnectionsPerAddress on, with a line and a count', test: 'test/local/http/hostile-clients.test.ts',
  },
  {
    finding: '12', request: 'GET /streams/x/ with X-Forwarded-Host: evil.test', before: 'a redirect that caches kept for a year, for all', now: 'no-store; and with TrustedProxies the header counts from these only', test: 'test/handlers/routes.test.ts',
  },
] as const;
