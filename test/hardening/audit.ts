/** Rows of the table of findings: the audit, and what users stumble over. */
export const AUDIT_ROWS = [
  {
    finding: '13', request: 'DELETE /users/sam as an operator, then as an administrator', before: 'nothing is kept of who did it, or tried to', now: 'one line each in the audit: action, outcome, user, address, target',
    test: 'test/local/audit/audit-trail.test.ts',
  },
  {
    finding: '13', request: '200 logins with 200 names from one address', before: 'no trace without LogFailedAuthenticationAttempts, with it 200 lines of log', now: '100 lines and one that stands for the rest; what others do is told all the same',
    test: 'test/handlers/audit.test.ts',
  },
  {
    finding: '13', request: 'any request while the disk of the audit is full', before: 'there is no audit', now: 'answered as ever; the loss is counted, logged, in /health/ready and in the audit itself', test: 'test/local/audit/audit-trail.test.ts',
  },
  {
    finding: 'users stumble', request: 'POST /users for a known user with the same password and other groups', before: '201, and the user is in none of them', now: '409 user_exists', test: 'test/security/users.test.ts',
  },
  { finding: 'users stumble', request: 'PUT /users/sam with {}', before: '200, and the user is in no group any more', now: '200, and nothing has changed', test: 'test/handlers/users/users.test.ts' },
  { finding: 'users stumble', request: 'GET /streams/s?from=3 as event stream', before: 'begins with event 4, as lines with event 3', now: 'both begin with event 3', test: 'test/handlers/streams/live.test.ts' },
  {
    finding: 'users stumble', request: 'a filtered event stream of $all that finds nothing, cut off and taken up again', before: 'the whole log is looked at again', now: 'goes on behind the id of the last checkpoint, or of caught-up',
    test: 'test/streams/subscriptions.test.ts',
  },
  { finding: 'users stumble', request: 'Accept-Encoding: gzip, deflate, br, zstd', before: 'not compressed', now: 'compressed, events one by one; Vary and the tag say so', test: 'test/local/http/compression.test.ts' },
  { finding: 'users stumble', request: 'POST /auto-scavenge/pause while the leader is another, or none is known', before: '400, 500', now: '503 with Retry-After', test: 'test/handlers/scavenging/auto-scavenge.test.ts' },
  { finding: 'users stumble', request: 'POST /admin/backup on a node without a repository', before: '400', now: '409 backup_off', test: 'test/local/backup/node.long.test.ts' },
  { finding: 'users stumble', request: 'GET /admin/backups with a bucket that is gone or closed', before: '500', now: '503 with Retry-After', test: 'test/handlers/backup/backups.test.ts' },
  { finding: 'users stumble', request: 'GET /admin/backup/files/{path} with a range beyond the end', before: '416 without a body', now: '416 with a problem document', test: 'test/handlers/backup/backups.test.ts' },
];
