import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { Agenda } from './agenda.ts';
import { createApi } from './api.ts';
import { takeReports } from './lab.ts';
import { connect } from './skua.ts';

/** `skua` is a connection string, `agenda` a file, and `port` may be 0 for any that is free. */
export type Settings = { skua: string; agenda: string; labSecret: string; port: number };

export type Clinic = { url: string; close(): Promise<void> };

export async function openClinic(settings: Settings): Promise<Clinic> {
  const skua = connect(settings.skua);
  await takeReports(skua, settings.labSecret);
  const agenda = new Agenda(settings.agenda);
  const following = agenda.follow(skua.client);
  const api = createApi(skua, agenda).listen(settings.port, '127.0.0.1');
  await once(api, 'listening');
  return {
    url: `http://127.0.0.1:${(api.address() as AddressInfo).port}`,
    async close() {
      await new Promise((resolve) => api.close(resolve));
      await agenda.close();
      await following;
      await skua.client.dispose();
    },
  };
}
