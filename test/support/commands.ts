import fc from 'fast-check';

/** Random commands for the property test. Streams and earlier appends are named by small numbers. */
export type Command =
  | {
      readonly do: 'append';
      readonly stream: number;
      readonly expected: Expected;
      readonly sizes: readonly number[];
      readonly isJson: boolean;
    }
  | {
      readonly do: 'together';
      readonly writes: readonly TogetherWrite[];
      readonly checks: readonly TogetherCheck[];
      readonly isRepeatable: boolean;
    }
  | {
      readonly do: 'together-again';
      readonly earlier: number;
      readonly how: 'same' | 'shorter' | 'longer' | 'unchecked';
    }
  | {
      readonly do: 'repeat';
      readonly earlier: number;
      readonly expected: Expected;
      readonly how: 'same' | 'shorter' | 'longer' | 'other-stream';
    }
  | {
      readonly do: 'metadata';
      readonly stream: number;
      readonly expected: Expected;
      readonly text: string;
      readonly isJson: boolean;
    }
  | { readonly do: 'delete'; readonly stream: number; readonly expected: Expected; readonly kind: 'soft' | 'hard' }
  | { readonly do: 'advance'; readonly ms: number }
  /** The wall clock is set back by hours. */
  | { readonly do: 'step-back'; readonly hours: number }
  | { readonly do: 'reopen' }
  | {
      readonly do: 'read';
      readonly stream: number;
      readonly meta: boolean;
      readonly direction: 'forward' | 'backward';
      readonly from: number | 'end';
      readonly count: number;
      readonly resolveLinks: boolean;
    }
  | { readonly do: 'event'; readonly stream: number; readonly meta: boolean; readonly number: number | 'last' }
  | { readonly do: 'info'; readonly stream: number }
  | {
      readonly do: 'all';
      readonly direction: 'forward' | 'backward';
      readonly count: number;
      readonly resolveLinks: boolean;
    };

/** A constant of the interface, a number, or one that is `last` plus something at the time. */
export type Expected = { readonly fixed: number } | { readonly fromLast: number };

/** A part of a write to several streams. Its expectation counts where the stream occurs in one part only. */
export interface TogetherWrite {
  readonly stream: number;
  readonly expected: Expected;
  readonly sizes: readonly number[];
  readonly meta: number;
}
export interface TogetherCheck {
  readonly stream: number;
  readonly expected: Expected;
}

const stream = fc.integer({ min: 0, max: 3 });
const expected: fc.Arbitrary<Expected> = fc.oneof(
  { weight: 5, arbitrary: fc.constant({ fixed: -2 }) },
  { weight: 4, arbitrary: fc.constant({ fromLast: 0 }) },
  { weight: 2, arbitrary: fc.constantFrom({ fixed: -1 }, { fixed: -4 }) },
  { weight: 1, arbitrary: fc.integer({ min: -3, max: 6 }).map((fixed) => ({ fixed })) },
  { weight: 1, arbitrary: fc.integer({ min: -3, max: 2 }).map((fromLast) => ({ fromLast })) },
);
const metadataText = fc.oneof(
  fc.integer({ min: 1, max: 6 }).map((n) => `{"$maxCount":${n}}`),
  fc.integer({ min: 0, max: 9 }).map((n) => `{"$tb":${n}}`),
  fc.integer({ min: 1, max: 40 }).map((n) => `{"$maxAge":${n},"owner":"x"}`),
  fc
    .tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 0, max: 6 }), fc.integer({ min: 5, max: 40 }))
    .map(
      ([a, b, c]) =>
        `{"$maxCount":${a},"$tb":${b},"$maxAge":${c},"$cacheControl":9,"$acl":{"$r":"ann","$w":["bob","$admins"]}}`,
    ),
  fc.constantFrom(
    '{}',
    '',
    '{"$maxCount":"4"}',
    '{"$maxCount":0,"$tb":2}',
    '{"$maxCount":2.5}',
    '[1]',
    '{"$maxCount":3',
    '{"$tb":9223372036854775807}',
    '{"$acl":{"$x":1},"$maxCount":1}',
    'null',
    '{"$tb":-1,"$maxAge":9}',
  ),
);
const count = fc.oneof(fc.integer({ min: 1, max: 7 }), fc.constantFrom(100, 4096));

const togetherWrite = fc.record({
  stream,
  expected,
  sizes: fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 3 }),
  meta: fc.integer({ min: 0, max: 11 }),
});
const togetherCheck = fc.record({ stream, expected });

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant('append' as const),
      stream,
      expected,
      sizes: fc.array(fc.integer({ min: 0, max: 300 }), { minLength: 1, maxLength: 5 }),
      isJson: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('together' as const),
      writes: fc.array(togetherWrite, { minLength: 1, maxLength: 4 }),
      checks: fc.array(togetherCheck, { maxLength: 2 }),
      isRepeatable: fc.integer({ min: 0, max: 5 }).map((n) => n > 0),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('together-again' as const),
      earlier: fc.nat({ max: 10 }),
      how: fc.constantFrom(
        'same' as const,
        'same' as const,
        'shorter' as const,
        'longer' as const,
        'unchecked' as const,
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('repeat' as const),
      earlier: fc.nat({ max: 30 }),
      expected,
      how: fc.constantFrom(
        'same' as const,
        'same' as const,
        'shorter' as const,
        'longer' as const,
        'other-stream' as const,
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('metadata' as const),
      stream,
      expected,
      text: metadataText,
      isJson: fc.integer({ min: 0, max: 9 }).map((n) => n > 0),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('delete' as const),
      stream,
      expected,
      kind: fc.constantFrom('soft' as const, 'soft' as const, 'soft' as const, 'hard' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 20_000 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('step-back' as const), hours: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'reopen' as const }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('read' as const),
      stream,
      meta: fc.boolean(),
      direction: fc.constantFrom('forward' as const, 'backward' as const),
      from: fc.oneof(fc.integer({ min: -1, max: 20 }), fc.constantFrom('end' as const, 9_007_199_254_740_991)),
      count,
      resolveLinks: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('event' as const),
      stream,
      meta: fc.boolean(),
      number: fc.oneof(fc.integer({ min: 0, max: 12 }), fc.constant('last' as const)),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('info' as const), stream }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('all' as const),
      direction: fc.constantFrom('forward' as const, 'backward' as const),
      count,
      resolveLinks: fc.boolean(),
    }),
  },
);

export const commands: fc.Arbitrary<Command[]> = fc.array(command, { minLength: 10, maxLength: 60, size: 'max' });
