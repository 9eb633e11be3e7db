import { openClinic } from './clinic.ts';

const { CONNECTION, AGENDA, LAB_SECRET, PORT } = process.env;

const clinic = await openClinic({
  skua: CONNECTION ?? 'kurrentdb://127.0.0.1:2113?tls=false',
  agenda: AGENDA ?? 'agenda.db',
  labSecret: LAB_SECRET ?? 'whsec_b25seSBmb3IgdHJ5aW5nIGl0IG91dA==',
  port: Number(PORT ?? 8080),
});
console.log(`The clinic is listening on ${clinic.url}`);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void clinic.close());
