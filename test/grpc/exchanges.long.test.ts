import * as http2 from 'node:http2';
import { expect, test } from 'vitest';
import { silentLog } from '../../core/ports/log.ts';
import { http2Side } from '../../local/grpc/connections.ts';
import { serve } from '../local/tls/clients.ts';
import { isOfWholeNode, listedDeviations, tellUnlisted } from './deviations.ts';
import { loadGrpcExchanges } from './recorded/exchange.ts';
import { replayed } from './recorded/node.ts';
import { SocketCall } from './recorded/socket-call.ts';

test('over a connection the recorded calls are answered in the same way, and so are those that only a connection decides', async () => {
  const { differences, compared, absent } = await replayed(async (grpc) => {
    const server = await serve({ http2: http2Side({ log: silentLog, grpc }) });
    let session: http2.ClientHttp2Session | null = null;
    const connected = (): http2.ClientHttp2Session => {
      if (session === null || session.closed || session.destroyed) {
        // Of megabytes, for what a client holds that sends more than is taken: beyond them it refuses what it is sent.
        session = http2.connect(server.url, { maxSessionMemory: 256 });
        session.on('error', () => {});
      }
      return session;
    };
    return {
      open: (path, metadata, deadlineMs) => new SocketCall(connected(), path, metadata, deadlineMs),
      // Frames are taken in their order: what was sent before a ping is there when it is answered, however slow the
      // machine is.
      pause: async () => {
        await pinged(connected());
        await new Promise((resolve) => {
          setTimeout(resolve, 5);
        });
        await pinged(connected());
      },
      plays: ({ name }) => !isOfWholeNode(name),
      // The server ends with the test.
      close: async () => {
        session?.destroy();
      },
    };
  });
  const listed = listedDeviations((name) => !isOfWholeNode(name));
  tellUnlisted(differences, listed);
  expect(compared).toBe(529);
  // The others are played with a whole node (`shutdown.test.ts`).
  expect(compared + loadGrpcExchanges().filter(({ name }) => isOfWholeNode(name)).length).toBe(536);
  expect([...absent]).toEqual([]);
  expect(Object.fromEntries(differences)).toEqual(Object.fromEntries(listed));
});

function pinged(session: http2.ClientHttp2Session): Promise<void> {
  return new Promise((resolve) => {
    // One that has ended has nothing on its way.
    session.once('close', resolve);
    if (
      session.ping(() => {
        session.off('close', resolve);
        resolve();
      }) === false
    )
      resolve();
  });
}
