import { STATUS_CODES } from 'node:http';
import type { ServerResponse } from 'node:http';
import { FastResponse } from 'srvx/node';

/** What a reply consists of, as the adapter's own Response holds it. */
type Parts = ReturnType<InstanceType<typeof FastResponse>['_toNodeResponse']>;

/**
 * Replies become plain parts that go to the socket as they are: the platform's own Response costs as much as all the
 * rest of a small request.
 */
export function useFastResponses(): void {
  globalThis.Response = FastResponse as unknown as typeof Response;
}

/** Writes a reply. The promise, if there is one, ends with a body that comes bit by bit, and rejects when that fails. */
export function sendReply(reply: ServerResponse, response: Response): Promise<void> | void {
  const { status, statusText, headers, body } = partsOf(response);
  reply.writeHead(status, statusText || STATUS_CODES[status] || '', headers);
  if (body instanceof ReadableStream) return stream(reply, body as ReadableStream<Uint8Array>);
  reply.end(body ?? undefined);
}

function partsOf(response: Response): Parts {
  if ('_toNodeResponse' in response) return (response as InstanceType<typeof FastResponse>)._toNodeResponse();
  return { status: response.status, statusText: response.statusText, headers: [...response.headers].flat(), body: response.body };
}

/** Hands the pieces on as the client takes them. A client that goes away cancels the body. */
async function stream(reply: ServerResponse, body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader();
  const cancel = () => { reader.cancel().catch(() => {}); };
  if (reply.destroyed || reply.req.method === 'HEAD') {
    cancel();
    reply.end();
    return;
  }
  reply.on('close', cancel);
  // Node holds the head back until there is a body; who subscribes to something quiet should know that it worked.
  reply.flushHeaders();
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      if (!reply.write(piece.value) && !reply.destroyed) await drained(reply);
    }
    reply.end();
  } finally {
    reply.off('close', cancel);
  }
}

function drained(reply: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      reply.off('drain', end);
      reply.off('close', end);
      resolve();
    };
    reply.on('drain', end);
    reply.on('close', end);
  });
}
