/** Rows of the table of findings: expressions over what clients send, and those that they give. */

const SENT = 'test/hardening/hostile-input.test.ts';
const FILTERS = 'test/handlers/streams/all-stream.test.ts';

export const EXPRESSIONS = [
  {
    finding: '1',
    request: 'X-Forwarded-Prefix: a, 31 kB of /, b',
    before: 'the node stood still for 2 s and more, before any access check',
    now: 'answered at once; forwarded values of more than 1 024 characters are ignored',
    test: SENT,
  },
  {
    finding: '1',
    request: 'Content-Type: application/json; charset=, 31 kB of blanks, x y',
    before: 'the node stood still for 4 s and more',
    now: '415 at once: parsed by content-type',
    test: SENT,
  },
  {
    finding: '1',
    request: 'a read with embed=pretty of {"a":0.00…01} of 64 kB, or of 4 MiB',
    before: 'the node stood still for 8 s, or for hours',
    now: 'answered in a time that grows with the text',
    test: SENT,
  },
  {
    finding: '1',
    request: 'the same character 32 000 times in every header, parameter and JSON token',
    before: 'seconds to hours',
    now: 'answered; 32 kB take at most 3 times as long as 16 kB (figure hostile-input)',
    test: SENT,
  },
  {
    finding: '1',
    request: 'a change of the sources with (\\.\\d+?)0+$, or with new RegExp',
    before: 'nobody saw it',
    now: 'npm run lint fails and says what to do',
    test: 'test/lint/linear-regexp.test.ts',
  },
  {
    finding: '2',
    request: 'GET /streams/$all/filtered with ^(\\u{61}+)+$',
    before: 'the node stood still for ever',
    now: '400 unsupported_expression; ^(\\x{61}+)+$ is answered in linear time',
    test: FILTERS,
  },
  {
    finding: '2',
    request: 'GET /streams/$all/filtered with ^(?:a{1,99}){1,99}$, or a{1000} 140 times',
    before: 'the node stood still for ever',
    now: '400 before anything is compiled that takes long',
    test: FILTERS,
  },
  {
    finding: '2',
    request: 'a filter with look-around or a back reference',
    before: '400 bad_request',
    now: '400 unsupported_expression, which names RE2',
    test: FILTERS,
  },
  {
    finding: '2',
    request: 'any filter, to a function',
    before: 'an engine that backtracks, without the flag that a node set',
    now: 'the engine that nodes have, and no flags',
    test: FILTERS,
  },
] as const;
