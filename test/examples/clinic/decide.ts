import { jsonEvent, NO_STREAM, StreamNotFoundError, WrongExpectedVersionError } from '@kurrent/kurrentdb-client';
import type { AppendStreamState, KurrentDBClient } from '@kurrent/kurrentdb-client';
import { evolve } from './day.ts';
import type { Day, DayEvent } from './day.ts';

const ATTEMPTS_MAX = 10;

/**
 * Reads a day, decides, and appends only if the day is still as it was read. Where another request came first, the
 * decision is taken again, on what the day has become.
 */
export async function decide(client: KurrentDBClient, date: string, decision: (day: Day) => DayEvent): Promise<void> {
  const stream = `day-${date}`;
  for (let attempt = 1; ; attempt++) {
    let day: Day = new Map();
    let streamState: AppendStreamState = NO_STREAM;
    try {
      for await (const { event } of client.readStream<DayEvent>(stream)) {
        day = evolve(day, event!);
        streamState = event!.revision;
      }
    } catch (error) {
      if (!(error instanceof StreamNotFoundError)) throw error;
    }
    try {
      await client.appendToStream(stream, jsonEvent(decision(day)), { streamState });
      return;
    } catch (error) {
      if (!(error instanceof WrongExpectedVersionError) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
