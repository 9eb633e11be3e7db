/**
 * Findings of the review about roles, access lists and browsers: the request that showed each, and what became of it.
 */
const TEST = 'test/hardening/access.test.ts';

export const ACCESS_ROWS = [
  {
    finding: '6',
    request: 'POST /admin/backup/hold and GET /admin/backup/files/{path} as a member of $ops',
    before: 'every stream and every user, in raw files',
    now: '403 that names $backup; members of $backup and $admins get them',
    test: TEST,
  },
  {
    finding: '6',
    request: 'skua backup create as a member of $ops',
    before: 'a backup',
    now: 'exit code 4 and the name of the role',
    test: TEST,
  },
  {
    finding: '7',
    request: 'POST /streams/x/metadata with {"$maxCount":"5","$acl":{"$r":"ada"}}, in five ways',
    before: '201, and everybody reads x',
    now: '400 invalid_metadata with the key and what it must be',
    test: TEST,
  },
  {
    finding: '7',
    request: 'POST /streams/x/metadata as application/octet-stream',
    before: '201, and everybody reads x',
    now: '400 invalid_metadata',
    test: TEST,
  },
  {
    finding: '7',
    request: 'an append to $settings that is no object of lists',
    before: '201, and the lists of $settings are gone',
    now: '400 invalid_metadata',
    test: TEST,
  },
  {
    finding: '7',
    request: 'GET /streams/x whose list another program left in a form that nobody understands',
    before: 'the events, for everybody',
    now: '403 but for administrators, a line in the log, a metric',
    test: TEST,
  },
  {
    finding: '7',
    request: 'random metadata, odd ones too, on the store and on a model of it',
    before: 'a list beside a key of the wrong type counts for nothing',
    now: 'it counts',
    test: 'test/properties/model.test.ts',
  },
  {
    finding: '8',
    request: 'POST /admin/shutdown by a page of another origin, with the credentials of the browser',
    before: 'the node stops',
    now: '403 foreign_origin, before credentials are looked at',
    test: TEST,
  },
  { finding: '8', request: 'POST /admin/backup with a body of type text/plain', before: '202', now: '415', test: TEST },
  {
    finding: '8',
    request: 'GET /streams/x by a page of another origin',
    before: 'Access-Control-Allow-Origin: *',
    now: 'no such header unless CorsOrigins names the origin',
    test: TEST,
  },
  {
    finding: '8',
    request: 'a TLS handshake of a browser',
    before: 'the browser asks its user for a certificate',
    now: 'nobody is asked unless trusted roots are named',
    test: 'test/local/tls/server.test.ts',
  },
  {
    finding: '8',
    request: 'GET /streams/x/0',
    before: 'kept for a year, whatever is erased',
    now: 'kept by one browser for a minute, apart by user',
    test: TEST,
  },
  {
    finding: '8',
    request: 'GET of anything',
    before: 'a browser may guess that an event is a page',
    now: 'X-Content-Type-Options: nosniff',
    test: TEST,
  },
  {
    finding: '8',
    request: 'a fetch of a page without a login',
    before: 'a password box opens',
    now: '401 with X-Basic; Basic for programs',
    test: TEST,
  },
  {
    finding: '8',
    request: 'every operation by a page of another origin, and with the header of a trusted proxy',
    before: 'not looked at',
    now: 'columns of the table of routes and roles',
    test: 'test/handlers/access.test.ts',
  },
  {
    finding: '8',
    request: 'a start with --cors-origins * --insecure',
    before: 'no such option',
    now: 'refused',
    test: 'test/local/config/check-start.test.ts',
  },
] as const;
