/** Rows of the table of findings: limits that callers share. */
const SLOW = 'test/hardening/slow-senders.test.ts';
const RULE = 'test/hardening/shared-limit.test.ts';
const CALLS = 'test/local/grpc/shared-limits.test.ts';
const FLOODS = 'test/local/grpc/refused-floods.test.ts';
const BYTES = 'test/hardening/byte-budget.test.ts';

export const EDGE_LIMITS = [
  {
    finding: '35 A1',
    request: '20 000 silent BatchAppend calls over 10 connections',
    before: 'every other gRPC call was too busy and every request of HTTP/2 503, for as long as it lasted',
    now: 'a connection has 128 calls; beyond three quarters of all only a caller is admitted who holds less than a sixteenth of them',
    test: CALLS,
  },
  {
    finding: '35 A1',
    request: 'calls that send nothing of a first message',
    before: 'they stayed for ever',
    now: 'they end with DEADLINE_EXCEEDED after 10 s; behind a first message a call may be silent for hours',
    test: CALLS,
  },
  {
    finding: '35 A1',
    request: 'calls whose callers are not known yet',
    before: 'they counted among those of all',
    now: 'at most 1 024 of one address, beside those of known callers',
    test: CALLS,
  },
  {
    finding: '35 A1',
    request: '20 000 calls over 157 connections that are refused and come again at once',
    before: 'one turn of the process began all of them: a probe waited for 2.9 s, and appends came to a twenty-fifth',
    now: 'a turn begins 64 streams and takes one connection; where only refusals were answered of late, two streams in a millisecond',
    test: FLOODS,
  },
  {
    finding: '35 A1',
    request: 'more streams of an address than may wait to begin',
    before: 'all began, or were refused at once',
    now: 'the connection is told to go, and new ones of the address stay unread until there is room',
    test: FLOODS,
  },
  {
    finding: '35 A1',
    request: 'bodies and messages of one caller that stand half-way',
    before: 'all of the bytes, until 120 s had passed',
    now: 'three quarters of the bytes; who holds little is admitted and waits behind nobody',
    test: BYTES,
  },
  {
    finding: '35 A2',
    request: '416 beginnings of messages, each by another caller, that stall',
    before: 'they kept the bytes until 30 or 120 s had passed, and who waited for some was refused',
    now: 'while somebody waits, the one that lags most behind 64 KiB a second goes, of those that we read',
    test: SLOW,
  },
  {
    finding: '35 A1',
    request: 'random takers and givers of one limit',
    before: 'whoever came first',
    now: 'nobody takes all, and who holds little is admitted while there is room',
    test: RULE,
  },
] as const;
