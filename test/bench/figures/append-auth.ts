import { join } from 'node:path';
import { startHttpLoad, startNode } from '../child.ts';
import { alternate, median, row } from '../figure.ts';
import type { Figure } from '../figure.ts';

const CONNECTIONS = 64;
const ADMIN = basic('admin', 'changeit');
/** Neither an administrator nor an operator, so that access lists are asked. */
const USER = { loginName: 'kim', fullName: 'Kim', groups: ['pickers'], password: 'a-password-of-some-length' };

export const appendAuth: Figure = {
  name: 'append-auth',
  how: `As append-http, but the two servers are two nodes: one without security, and one whose users and access lists are in force, where all ${CONNECTIONS} connections send the credentials of a user who is no administrator with each request. Values are the median latency of a window.`,
  async run(settings) {
    const open = await startNode(join(settings.folder, 'append-open'));
    const secured = await startNode(join(settings.folder, 'append-secured'), '--disable-tls').catch(
      async (error: unknown) => {
        await open.stop();
        throw error;
      },
    );
    const generator = startHttpLoad();
    const load = async (port: number, authorization?: string): Promise<number> => {
      return (
        await generator.load({
          port,
          connections: CONNECTIONS,
          ms: settings.windowMs,
          ...(authorization !== undefined && { authorization }),
        })
      ).p50Ms;
    };
    try {
      const reply = await fetch(`http://127.0.0.1:${secured.port}/users`, {
        method: 'POST',
        headers: { authorization: ADMIN, 'content-type': 'application/json' },
        body: JSON.stringify(USER),
      });
      if (reply.status !== 201) throw new Error(`The user was not created: ${reply.status} ${await reply.text()}`);
      const authorization = basic(USER.loginName, USER.password);
      for (let i = 0; i < 2; i++) {
        await load(open.port);
        await load(secured.port, authorization);
      }
      const measured = await alternate(
        settings.windows,
        () => load(open.port),
        () => load(secured.port, authorization),
      );
      return [
        row('append latency over HTTP with authentication', 'ms', measured, { kind: 'below', value: 1.1 }, [
          `added ${(median(measured.ours) - median(measured.limit)).toFixed(2)} ms`,
        ]),
      ];
    } finally {
      await generator.stop();
      await open.stop();
      await secured.stop();
    }
  },
};

function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
}
