import { createServer } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import { json } from 'node:stream/consumers';
import { StreamDeletedError, WrongExpectedVersionError } from '@kurrent/kurrentdb-client';
import type { Agenda } from './agenda.ts';
import { book, cancel, Refused } from './day.ts';
import { decide } from './decide.ts';
import { erase } from './erase.ts';
import { look, register } from './patients.ts';
import type { Skua } from './skua.ts';

type Answer = readonly [status: number, body?: unknown];
type Body = Readonly<Record<string, unknown>>;
type Route = readonly [method: string, path: RegExp, answer: (names: string[], body: Body) => Promise<Answer>];

const PATIENT = /^\/patients\/([a-z0-9-]{1,36})$/;
const DAY = /^\/days\/(\d{4}-\d\d-\d\d)$/;
const APPOINTMENT = /^\/days\/(\d{4}-\d\d-\d\d)\/([\d:]+)$/;

/** The HTTP API. Commands go to streams, the agenda of a day comes from the read model. */
export function createApi(skua: Skua, agenda: Agenda): Server {
  const { client } = skua;
  const found = async (id: string) => {
    const patient = await look(client, id);
    if (patient === null) throw new Refused(404, 'There is no such patient.');
    return patient;
  };
  const routes: readonly Route[] = [
    ['PUT', PATIENT, async ([id], { name, phone }) => [201, await register(client, id!, textsOf({ name, phone }))]],
    ['GET', PATIENT, async ([id]) => [200, await found(id!)]],
    ['DELETE', PATIENT, async ([id]) => [200, await erase(skua, id!)]],
    ['GET', DAY, async ([date]) => [200, agenda.day(date!)]],
    [
      'PUT',
      APPOINTMENT,
      async ([date, time], body) => {
        const { patient } = textsOf({ patient: body['patient'] });
        await found(patient);
        return [201, await decide(client, date!, (day) => book(day, time!, patient))];
      },
    ],
    ['DELETE', APPOINTMENT, async ([date, time]) => [200, await decide(client, date!, (day) => cancel(day, time!))]],
  ];
  return createServer((request, response) => {
    void answerOf(request, routes).then(([status, body = {}]) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(`${JSON.stringify(body)}\n`);
    });
  });
}

async function answerOf(request: IncomingMessage, routes: readonly Route[]): Promise<Answer> {
  try {
    for (const [method, path, answer] of routes) {
      const match = path.exec(request.url!);
      if (match !== null && method === request.method)
        return await answer(match.slice(1), method === 'PUT' ? (((await json(request)) ?? {}) as Body) : {});
    }
    return [404, { error: 'There is nothing here.' }];
  } catch (error) {
    if (error instanceof Refused) return [error.status, { error: error.message }];
    if (error instanceof SyntaxError) return [400, { error: 'The body is no JSON.' }];
    if (error instanceof WrongExpectedVersionError) return [409, { error: 'It is not as you expect.' }];
    if (error instanceof StreamDeletedError) return [410, { error: 'It was erased.' }];
    console.error(error);
    return [500, { error: 'It failed: see the log.' }];
  }
}

function textsOf<Name extends string>(values: Record<Name, unknown>): Record<Name, string> {
  for (const [name, value] of Object.entries(values))
    if (typeof value !== 'string') throw new Refused(400, `Give ${name}.`);
  return values as Record<Name, string>;
}
