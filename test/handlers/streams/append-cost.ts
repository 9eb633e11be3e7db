import { createApp } from '../../../handlers/app.ts';
import { silentLog } from '../../../core/ports/log.ts';
import { silentMeter } from '../../../core/ports/meter.ts';
import type { EventStore } from '../../../core/streams/api.ts';
import { FakeScavenger } from '../../support/fake-scavenger.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { SeededIds } from '../../support/seeded-ids.ts';
import { contextOf } from '../../support/app-context.ts';

/**
 * What the handlers cost per append: `node test/handlers/streams/append-cost.ts`. The store answers at once, so the difference
 * to the baseline (making a Request, reading its body, making a Response) is the handlers' own time.
 */
const ROUNDS = 50_000;
const URL_TEXT = 'http://127.0.0.1:2113/streams/parcels-17';

const result = Promise.resolve({ firstEventNumber: 1, lastEventNumber: 1, position: 1, isRepeat: false });
const store = { append: () => result } as unknown as EventStore;
const clock = new ManualClock();
const ids = new SeededIds();
const app = createApp(contextOf({ store, scavenger: new FakeScavenger(), clock, ids, log: silentLog, meter: silentMeter, security: null, node: null }));

const single = `{"parcel":"${'p'.repeat(120)}","grams":750.5,"note":"${'n'.repeat(90)}"}`;
const batch = `[{"eventId":"6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11","eventType":"parcel-weighed","data":${single}}]`;
const BODIES: Record<string, { readonly body: string; readonly headers: Record<string, string> }> = {
  single: { body: single, headers: { 'content-type': 'application/json', 'es-eventtype': 'parcel-weighed', 'es-eventid': '6f0d6a0e-3f0c-4a0b-9d07-6f1c5a7f2b11' } },
  batch: { body: batch, headers: { 'content-type': 'application/vnd.eventstore.events+json' } },
};

function requestOf(name: string): Request {
  const { body, headers } = BODIES[name]!;
  return new Request(URL_TEXT, { method: 'POST', headers: { ...headers, 'content-length': String(body.length) }, body });
}

const CORS = { 'access-control-allow-methods': 'a', 'access-control-allow-headers': 'b', 'access-control-allow-origin': '*', 'access-control-expose-headers': 'c' };

async function baseline(request: Request): Promise<Response> {
  await request.arrayBuffer();
  return new Response(null, { status: 201, statusText: 'Created', headers: { ...CORS, 'content-type': 'text/plain; charset=utf-8', 'content-length': '0', location: URL_TEXT } });
}

async function microsecondsOf(name: string, handler: (request: Request) => Response | Promise<Response>): Promise<number> {
  const start = performance.now();
  for (let i = 0; i < ROUNDS; i++) {
    const response = await handler(requestOf(name));
    if (response.status !== 201) throw new Error(`Status ${response.status}: ${await response.text()}`);
  }
  return ((performance.now() - start) * 1000) / ROUNDS;
}

for (let round = 0; round < 3; round++) {
  for (const name of Object.keys(BODIES)) {
    const base = await microsecondsOf(name, baseline);
    const whole = await microsecondsOf(name, app);
    console.log(`${name}: ${whole.toFixed(1)} us, of which the handlers ${(whole - base).toFixed(1)} us`);
  }
}
