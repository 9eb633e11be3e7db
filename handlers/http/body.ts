import { SkuaError } from '../../core/base/errors.ts';
import type { App, Call, OnBytes } from './context.ts';
import { xmlRemark } from './absent.ts';
import { mediaTypeOf } from './negotiate.ts';

function tooLarge(bytesMax: number): SkuaError {
  return new SkuaError('body_too_large', `The request body exceeds ${bytesMax} bytes. Send fewer events at once.`, {
    limit: bytesMax,
  });
}

/**
 * The whole body. A declared length beyond the limit is refused before anything is read; an undeclared one is counted.
 * `onBytes` as for `ServerSide.readBody`.
 */
export function readBody(
  call: Call,
  app: App,
  bytesMax: number = app.options.bodyBytesMax,
  onBytes?: OnBytes,
): Promise<Uint8Array> {
  if (call.body !== null)
    return call.body.length > bytesMax ? Promise.reject(tooLarge(bytesMax)) : Promise.resolve(call.body);
  const declared = call.request.headers.get('content-length');
  if (declared !== null && Number(declared) > bytesMax) return Promise.reject(tooLarge(bytesMax));
  if (app.server.readBody !== undefined) return app.server.readBody(call.request, bytesMax, onBytes);
  return declared === null || onBytes !== undefined
    ? readCounted(call.request, bytesMax, onBytes)
    : readDeclared(call.request, bytesMax);
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The JSON value of a body of at most `bytesMax` bytes. Errors: `unsupported_media_type`, `body_too_large`, `bad_json`.
 */
export async function readJson(call: Call, app: App, bytesMax: number): Promise<unknown> {
  return (await readJsonText(call, app, bytesMax)).value;
}

/** The same with its text, where numbers count that a value does not hold. */
export async function readJsonText(
  call: Call,
  app: App,
  bytesMax: number,
): Promise<{ readonly value: unknown; readonly text: string }> {
  requireJsonType(call);
  const bytes = await readBody(call, app, bytesMax);
  try {
    const text = utf8.decode(bytes);
    return { value: JSON.parse(text), text };
  } catch {
    // The reason that the parser gives quotes the body, and with it secrets.
    throw new SkuaError('bad_json', 'The body is not valid JSON in UTF-8.');
  }
}

/**
 * Refuses a body of another type, or of none: a form of any page can send those, and browsers ask no server first.
 * Every route that reads a body looks at its type. Errors: `unsupported_media_type`.
 */
export function requireJsonType(call: Call): void {
  const contentType = call.request.headers.get('content-type');
  const { type, isUtf8 } = mediaTypeOf(contentType ?? '');
  if (type === 'application/json' && isUtf8) return;
  throw new SkuaError(
    'unsupported_media_type',
    `${xmlRemark(type)}Content-Type '${(contentType ?? '').slice(0, 100)}' is not supported here. Send application/json in UTF-8.`,
  );
}

async function readDeclared(request: Request, bytesMax: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(await request.arrayBuffer());
  if (bytes.length > bytesMax) throw tooLarge(bytesMax);
  return bytes;
}

async function readCounted(request: Request, bytesMax: number, onBytes: OnBytes = () => true): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array(0);
  const parts: Uint8Array[] = [];
  let total = 0;
  // Leaving the loop by an error cancels the stream, so the rest is never read.
  for await (const part of request.body as ReadableStream<Uint8Array>) {
    total += part.length;
    if (total > bytesMax) throw tooLarge(bytesMax);
    if (!onBytes(part.length)) throw new SkuaError('aborted', 'The rest of the body is not needed.');
    parts.push(part);
  }
  if (parts.length === 1) return parts[0]!;
  const bytes = new Uint8Array(total);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
