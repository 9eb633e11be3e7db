import { jsonEvent, NO_STREAM, StreamNotFoundError } from '@kurrent/kurrentdb-client';
import type { KurrentDBClient } from '@kurrent/kurrentdb-client';

/** Reports from the lab are kept for a year, in seconds. */
const REPORTS_MAX_AGE = 365 * 86_400;

export type Patient = { name: string; phone: string };

/**
 * Everything personal lies in these two streams. Other streams hold no more than the patient's id, which leads nowhere
 * once these are gone.
 */
export const streamsOf = (id: string): [patient: string, reports: string] => [`patient-${id}`, `lab-${id}`];

export async function register(client: KurrentDBClient, id: string, data: Patient): Promise<void> {
  const [stream, reports] = streamsOf(id);
  await client.setStreamMetadata(reports, { maxAge: REPORTS_MAX_AGE });
  await client.appendToStream(stream, jsonEvent({ type: 'PatientRegistered', data }), { streamState: NO_STREAM });
}

/** A patient with the reports that are still kept; null if there is none of this id. */
export async function look(client: KurrentDBClient, id: string): Promise<(Patient & { reports: unknown[] }) | null> {
  const [stream, reports] = streamsOf(id);
  const [patient] = (await dataOf(client, stream)) as Patient[];
  return patient === undefined ? null : { ...patient, reports: await dataOf(client, reports) };
}

async function dataOf(client: KurrentDBClient, stream: string): Promise<unknown[]> {
  const data: unknown[] = [];
  try {
    for await (const { event } of client.readStream(stream)) data.push(event!.data);
  } catch (error) {
    if (!(error instanceof StreamNotFoundError)) throw error;
  }
  return data;
}
