import { readBody } from '../../../local/http/http-request.ts';
import type { HttpServer } from '../../../local/http/server.ts';
import type { CertificateSet } from '../../../local/tls/certificate-set.ts';
import { connect, called, echo, serveGrpc } from '../grpc/clients.ts';
import { call } from '../tls/clients.ts';

/** As short as a test needs where a client says nothing: who means well tries again. */
const QUICK = { headersMs: 60, requestMs: 120, checkMs: 20, handshakeMs: 120, keepAliveMs: 120 };

/**
 * A server of both protocols with all that a connection can wait for: a reply, one that comes bit by bit, a body, a
 * call.
 */
export function edgeServer(certificates: CertificateSet | null): Promise<HttpServer> {
  return serveGrpc(
    (call) =>
      call.path.endsWith('/Silent')
        ? new Promise((resolve) => {
            call.request.signal.addEventListener('abort', () => resolve());
          })
        : echo(call),
    {
      patience: QUICK,
      ...(certificates !== null && { tls: { certificates } }),
      fetch: async (request) => {
        const path = new URL(request.url).pathname;
        if (path === '/body') return new Response(`${(await readBody(request, 100_000)).length}`);
        if (path === '/long')
          await new Promise((resolve) => {
            request.signal.addEventListener('abort', resolve);
          });
        if (path !== '/events') return new Response('pong');
        // Subscriptions begin at once, and say nothing for long.
        return new Response(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from(':\n\n')) }), {
          headers: { 'content-type': 'text/event-stream' },
        });
      },
    },
    { requestMs: QUICK.requestMs, keepAliveIntervalMs: QUICK.keepAliveMs, keepAliveTimeoutMs: QUICK.keepAliveMs },
  );
}

/** That the server answers whoever means well, over both protocols. */
export async function isWell(server: HttpServer): Promise<void> {
  // On a busy machine a good client may be as late as a bad one.
  for (;;) {
    const { status } = await call(server, { path: '/ping', rejectUnauthorized: false, agent: false }).catch(() => ({
      status: 0,
    }));
    if (status === 200) break;
  }
  for (;;) {
    const session = connect(server, { rejectUnauthorized: false });
    const { texts } = await called(session, ['well']);
    session.destroy();
    if (texts[0] === 'well') return;
  }
}
