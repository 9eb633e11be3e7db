/** The rules for the appointments of one day. They know of no store, so that a test of them needs none. */

export type DayEvent =
  | { type: 'AppointmentBooked'; data: { time: string; patient: string } }
  | { type: 'AppointmentCancelled'; data: { time: string } };

/** The patients of a day by the time of their appointment. */
export type Day = ReadonlyMap<string, string>;

export function evolve(day: Day, event: DayEvent): Day {
  const changed = new Map(day);
  if (event.type === 'AppointmentBooked') changed.set(event.data.time, event.data.patient);
  else changed.delete(event.data.time);
  return changed;
}

export function book(day: Day, time: string, patient: string): DayEvent {
  if (!/^(?:[01]\d|2[0-3]):[0-5]\d$/.test(time)) throw new Refused(400, 'Give the time as HH:MM.');
  if (day.has(time)) throw new Refused(409, `${time} is taken.`);
  return { type: 'AppointmentBooked', data: { time, patient } };
}

export function cancel(day: Day, time: string): DayEvent {
  if (!day.has(time)) throw new Refused(404, `There is no appointment at ${time}.`);
  return { type: 'AppointmentCancelled', data: { time } };
}

/** What a rule refuses, with the status that the HTTP API answers. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
