import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fixturePath } from '../../support/fixtures.ts';
import { Members, originOf } from './kit.ts';
import type { TestMember } from './kit.ts';

/** Three members and a read-only replica of the reference, as they answered one after the other. */
interface Recorded {
  readonly phase: string;
  readonly at: string;
  readonly note: string;
  readonly request?: {
    readonly method: string;
    readonly url: string;
    readonly headers: Record<string, string>;
    readonly body?: string;
  };
  readonly response?: { readonly status: number; readonly reason: string; readonly headers: Record<string, string> };
}

const RECORDED = (JSON.parse(readFileSync(fixturePath('cluster-exchanges.json'), 'utf8')) as Recorded[]).map(
  (exchange, index) => ({ ...exchange, index }),
);
/** What the members of the recording are called there, as members of ours. */
const MEMBERS: Readonly<Record<string, number>> = { leader: 0, follower: 1, readonlyreplica: 2, unknown: 1 };
const ORIGINS: Readonly<Record<string, string>> = {
  'http://127.0.0.1:2133': originOf(0),
  'http://127.0.0.1:2113': originOf(1),
  'http://127.0.0.1:2143': originOf(2),
  'http://127.0.0.1:2123': originOf(1),
};

/** Everything of streams: who is who and what operators do is asked elsewhere. */
const OF_STREAMS = RECORDED.filter(({ request }) => request?.url.startsWith('/streams/'));
const SETTLED = OF_STREAMS.filter(({ phase }) => phase === 'settled');

/** Ours and not theirs, each with the reason. */
const DEVIATIONS: Readonly<Record<number, { readonly status: number; readonly why: string }>> = {
  79: { status: 201, why: 'Members commit by themselves while nobody leads.' },
  80: { status: 503, why: 'A leader that is gone is no place to send anybody to.' },
  89: { status: 201, why: 'Members commit by themselves, however many are left.' },
};

let members: Members;
let all: TestMember[];

beforeAll(async () => {
  members = new Members();
  all = [await members.open(), await members.open(), await members.open()];
  await members.leads(all[0]!, all[1]!, all[2]!);
});

afterAll(() => members.close());

async function replayed({ at, request }: Recorded): Promise<{
  status: number;
  reason: string;
  location: string | null;
  version: string | null;
  methods: string | null;
  length: string | null;
}> {
  let isAnswered = false;
  const asked = members.all[MEMBERS[at]!]!.send(
    request!.method,
    request!.url,
    request!.headers,
    request!.body ?? null,
  ).finally(() => {
    isAnswered = true;
  });
  for (let i = 0; i < 100 && !isAnswered; i++) await members.cluster.clock.advance(250);
  const { status, reason, headers } = await asked;
  return {
    status,
    reason,
    location: headers.get('location'),
    version: headers.get('es-currentversion'),
    methods: headers.get('access-control-allow-methods'),
    length: lengthOf(status, headers.get('content-length')),
  };
}

/** Pages have other links, and errors have documents here. */
function lengthOf(status: number, length: string | null): string | null {
  return status === 200 || status >= 400 ? null : length;
}

function expected({ response }: Recorded): Awaited<ReturnType<typeof replayed>> {
  const { status, reason, headers } = response!;
  const location = headers['location'];
  const origin = location === undefined ? '' : location.slice(0, location.indexOf('/streams'));
  return {
    status,
    reason,
    location: location === undefined ? null : ORIGINS[origin]! + location.slice(origin.length),
    version: headers['es-currentversion'] ?? null,
    methods: headers['access-control-allow-methods'] ?? null,
    length: lengthOf(status, headers['content-length'] ?? null),
  };
}

describe('what the reference answered, while there is a leader', () => {
  test.each(
    SETTLED.map((exchange) => [`${exchange.index}: ${exchange.note}, at the ${exchange.at}`, exchange] as const),
  )('%s', async (_, exchange) => {
    expect(await replayed(exchange)).toEqual(expected(exchange));
  });

  test('all of it was asked', () => {
    expect(SETTLED).toHaveLength(28);
  });
});

describe('and while there is none', () => {
  test.each(
    OF_STREAMS.filter(({ phase }) => phase !== 'settled').map(
      (exchange) => [`${exchange.index}: ${exchange.note}`, exchange] as const,
    ),
  )('%s', async (_, exchange) => {
    for (const member of all) member.lead.knows(null);
    const { status } = await replayed(exchange);
    expect(status).toBe(DEVIATIONS[exchange.index]?.status ?? exchange.response!.status);
  });
});
