// The applications of one process, all with the same node preference: a process may load one generation of the client
// only, and the former one mixes up appends of several clients.
import {
  appendInTurn,
  appendMany,
  consume,
  consumeAll,
  EVENTS,
  followAll,
  followStream,
  idsOf,
  newReport,
} from './application.ts';
import type { Client, Following, Library, Place, Report } from './application.ts';

/** What a process is told by the one that has started it. */
export interface Work {
  readonly library: 'eventstore' | 'kurrent';
  readonly connectionString: string;
  /** Of its applications and streams. */
  readonly name: string;
  /** Credentials may be sent with single calls: then an append is a call of its own. */
  readonly isSecure: boolean;
}

/** What it says in the end. */
export type Outcome = Omit<Report, 'appended'> & { readonly acknowledged: number };

const GROUP = 'workers';
const CREDENTIALS = { username: 'admin', password: 'changeit' };

async function work({ library, connectionString, name, isSecure }: Work, over: Promise<unknown>): Promise<Outcome> {
  const isNew = library === 'kurrent';
  const lib = (isNew
    ? await import('@kurrent/kurrentdb-client')
    : await import('@eventstore/db-client')) as unknown as Library & { EventStoreDBClient: Library['KurrentDBClient'] };
  const report = newReport();
  const clients: Client[] = [];
  let isOver = false;
  const connect = (): Client => {
    const client = (isNew ? lib.KurrentDBClient : lib.EventStoreDBClient).connectionString(connectionString);
    clients.push(client);
    return client;
  };
  const place = (what: string): Place => {
    const client = connect();
    const made: Place = {
      lib,
      client,
      reader: isNew ? connect() : client,
      renewReader: async () => {
        if (isNew) made.reader = connect();
      },
      name: `${what} with ${name}`,
      report,
      isOver: () => isOver,
    };
    return made;
  };
  const [turn, many, leading] = [`turn-${name}`, `many-${name}`, `leading-${name}`];
  const [writer, reader, follower] = [place('writer'), place('reader'), place('follower of $all')];
  const writing = [appendInTurn(writer, turn), appendMany(writer, many)];
  if (isSecure)
    writing.push(
      appendInTurn(place('writer at the leader'), leading, { requiresLeader: true, credentials: CREDENTIALS }),
    );
  const following = [
    followStream(reader, turn),
    followStream(reader, many),
    followAll(follower, isSecure ? leading : turn),
    await consume(place('consumer'), many, GROUP),
    await consumeAll(place('consumer of $all'), many, `${GROUP}-${name}`),
  ];
  process.send!('begun');
  await over;
  isOver = true;
  await Promise.all(writing);
  const judged = await Promise.all(
    [...report.appended].map(async ([stream, acknowledged]) => {
      const ids = await idsOf(reader, stream);
      report.problems.push(...judgeStream(stream, ids, acknowledged, stream !== many));
      return [stream, ids] as const;
    }),
  );
  const found = new Map(judged);
  await Promise.all(following.map(async (one) => judgeFollowing(one, found.get(one.stream)!, report)));
  for (const client of clients) await client.dispose();
  const { appended, ...rest } = report;
  return { ...rest, acknowledged: [...appended.values()].reduce((sum, { length }) => sum + length, 0) };
}

/** What was acknowledged is there once; where appends were made in turn, in that order. */
function judgeStream(
  stream: string,
  found: readonly string[],
  acknowledged: readonly string[],
  isInTurn: boolean,
): string[] {
  const problems: string[] = [];
  const counts = new Map<string, number>();
  for (const id of found) counts.set(id, (counts.get(id) ?? 0) + 1);
  for (const id of acknowledged)
    if (counts.get(id) !== 1)
      problems.push(`${stream}: ${id} was acknowledged and is there ${counts.get(id) ?? 0} times`);
  if (isInTurn && JSON.stringify(found) !== JSON.stringify(acknowledged))
    problems.push(
      `${stream}: ${found.length} events are not the ${acknowledged.length} that were acknowledged, in their order`,
    );
  if (found.length !== counts.size)
    problems.push(`${stream}: ${found.length - counts.size} events are there more than once`);
  if (!isInTurn) {
    const at = new Map(found.map((id, i) => [id, i]));
    for (let i = 0; i < acknowledged.length; i += EVENTS)
      for (let k = 1; k < EVENTS; k++)
        if (at.get(acknowledged[i + k]!) !== at.get(acknowledged[i]!)! + k)
          problems.push(`${stream}: the events of an append do not stand side by side`);
  }
  return problems.slice(0, 10);
}

/** Subscriptions have given each event once, in the order of the stream; consumers of a group each at least once. */
async function judgeFollowing(following: Following, ids: readonly string[], { problems }: Report): Promise<void> {
  await following.until(ids.length);
  await following.stop();
  const { name, isGroup, ids: given } = following;
  const [ours, theirs] = isGroup ? [given.toSorted(), ids.toSorted()] : [given, ids];
  if (JSON.stringify(ours) !== JSON.stringify(theirs))
    problems.push(
      `${name}: ${given.length} events were given, which are not the ${ids.length} of the stream${isGroup ? '' : ' in their order'}`,
    );
}

// Nobody waits for it any more.
process.once('disconnect', () => process.exit(1));
const over = new Promise((resolve) => {
  process.once('message', resolve);
});
const outcome = await work(JSON.parse(process.argv[2]!) as Work, over);
process.send!(outcome, () => process.exit(0));
