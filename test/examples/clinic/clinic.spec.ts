import { createHmac, randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestNode } from 'skua/testing';
import type { TestNode } from 'skua/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openClinic } from './clinic.ts';
import type { Clinic } from './clinic.ts';

const KEY = 'shared with the lab';
let node: TestNode;
let clinic: Clinic;
let agenda: string;

beforeAll(async () => {
  node = await startTestNode({ options: { 'Connectors:DataProtection:Token': 'of these tests' } });
  agenda = join(await mkdtemp(join(tmpdir(), 'clinic-')), 'agenda.db');
  clinic = await open();
});

afterAll(async () => {
  await clinic.close();
  await node.stop();
  await rm(join(agenda, '..'), { recursive: true });
});

function open(): Promise<Clinic> {
  const labSecret = `whsec_${Buffer.from(KEY).toString('base64')}`;
  return openClinic({ skua: node.kurrentConnectionString, agenda, labSecret, port: 0 });
}

async function ask(method: string, path: string, body?: unknown): Promise<[status: number, body: unknown]> {
  const reply = await fetch(`${clinic.url}${path}`, { method, body: JSON.stringify(body) ?? null });
  return [reply.status, await reply.json()];
}

const register = (id: string, name: string) => ask('PUT', `/patients/${id}`, { name, phone: '555 0100' });
const book = (date: string, time: string, patient: string) => ask('PUT', `/days/${date}/${time}`, { patient });

/** The read model follows in a moment: until then the test asks again. */
const agendaIs = (date: string, expected: unknown) =>
  expect.poll(() => ask('GET', `/days/${date}`)).toMatchObject([200, expected]);

/** A call of the lab, signed as the specification of Standard Webhooks says. */
async function report(patient: string, finding: string, key = KEY): Promise<number> {
  const body = JSON.stringify({ patient, finding });
  const [id, time] = [randomUUID(), String(Math.floor(Date.now() / 1_000))];
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': time,
    'webhook-signature': `v1,${createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')}`,
  };
  return (await fetch(`${node.url}/webhook/lab`, { method: 'POST', headers, body })).status;
}

test('of two requests for one time one gets it, and others are not in their way', async () => {
  expect(await register('1', 'Ann')).toEqual([201, {}]);
  expect(await register('1', 'Ann')).toMatchObject([409, {}]);
  expect(await ask('PUT', '/patients/5', null)).toEqual([400, { error: 'Give name.' }]);
  const replies = await Promise.all(['09:30', '09:30', '10:00'].map((time) => book('2030-01-07', time, '1')));
  expect(replies.map(([status]) => status).sort()).toEqual([201, 201, 409]);
  expect(await book('2030-01-07', '11:00', 'nobody')).toMatchObject([404, {}]);
});

test('after a restart the agenda goes on where it was', async () => {
  await register('2', 'Bob');
  await book('2030-01-08', '09:00', '2');
  await agendaIs('2030-01-08', [{ time: '09:00', name: 'Bob' }]);
  await clinic.close();
  await node.store.append('day-2030-01-08', { type: 'AppointmentBooked', data: { time: '08:00', patient: '2' } });
  clinic = await open();
  await agendaIs('2030-01-08', [{ time: '08:00', name: 'Bob' }, { time: '09:00' }]);
});

test('reports are taken with the right signature alone, and kept for a year', async () => {
  await register('3', 'Cleo');
  expect(await report('3', 'forged', 'another key')).toBe(401);
  expect(await report('3', 'first')).toBe(201);
  await node.advanceTime({ days: 366 });
  expect(await report('3', 'second')).toBe(201);
  expect(await ask('GET', '/patients/3')).toMatchObject([200, { reports: [{ finding: 'second' }] }]);
  const { removed } = await node.scavenge();
  expect(removed.filter(({ stream }) => stream === 'lab-3')).toMatchObject([{ version: 0 }]);
});

test('a patient who is erased is nowhere any more, and does not come back', async () => {
  await register('4', 'Dorothea');
  await report('4', 'found');
  await book('2030-01-09', '09:00', '4');
  await agendaIs('2030-01-09', [{ name: 'Dorothea' }]);
  const erased = { isErased: true, traces: 0 };
  const proofs = [
    { stream: 'patient-4', ...erased },
    { stream: 'lab-4', ...erased },
  ];
  expect(await ask('DELETE', '/patients/4')).toMatchObject([200, proofs]);
  expect(await ask('GET', '/patients/4')).toMatchObject([410, {}]);
  expect(await register('4', 'Dorothea')).toMatchObject([410, {}]);
  expect(await report('4', 'too late')).toBe(422);
  await agendaIs('2030-01-09', [{ name: null }]);
  expect(await readFile(agenda, 'latin1')).not.toContain('Dorothea');
});
