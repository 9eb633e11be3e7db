import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';

/**
 * Messages as JSON in the form of the recorded exchanges: names as in the .proto files, bytes as base64, numbers of 64
 * bits as decimal text, enums by name, and only what is on the wire. Made by reflection over the .proto files, so it
 * shares no code with our generated messages.
 */
export type Json = Record<string, any>;

const PROTO = fileURLToPath(new URL('../../handlers/grpc/proto', import.meta.url));

/** All our .proto files. */
export const PROTOS = new protobuf.Root();
PROTOS.resolvePath = (_, name) => join(PROTO, name);
PROTOS.loadSync(
  readdirSync(PROTO)
    .filter((name) => name.endsWith('.proto'))
    .sort(),
  { keepCase: true },
).resolveAll();

export interface Method {
  readonly request: protobuf.Type;
  readonly response: protobuf.Type;
  readonly hasManyRequests: boolean;
  readonly hasManyResponses: boolean;
}

/** The method with this path, `/package.Service/Method`; null for none of ours. */
export function methodAt(path: string): Method | null {
  const [, service = '', name = ''] = path.split('/');
  const found = PROTOS.lookup(service) as protobuf.Service | null;
  const method = found instanceof protobuf.Service ? found.methods[name] : undefined;
  if (method === undefined) return null;
  return {
    request: method.resolvedRequestType!,
    response: method.resolvedResponseType!,
    hasManyRequests: method.requestStream === true,
    hasManyResponses: method.responseStream === true,
  };
}

export function typeOf(name: string): protobuf.Type {
  return PROTOS.lookupType(name);
}

export function toBytes(type: protobuf.Type | string, json: Json): Uint8Array {
  const found = typeof type === 'string' ? typeOf(type) : type;
  return found.encode(found.fromObject(json)).finish();
}

export function toJson(type: protobuf.Type | string, bytes: Uint8Array): Json {
  const found = typeof type === 'string' ? typeOf(type) : type;
  return found.toObject(found.decode(bytes), { longs: String, enums: String, bytes: String });
}

/**
 * The messages of a block of frames, each with its prefix. Throws for what is no whole number of frames, or compressed.
 */
export function unframed(block: Uint8Array): Uint8Array[] {
  const out: Uint8Array[] = [];
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength);
  for (let at = 0; at < block.length;) {
    if (block[at] !== 0) throw new Error(`no frame begins with ${block[at]}`);
    const end = at + 5 + view.getUint32(at + 1);
    if (end > block.length) throw new Error('a block ends within a frame');
    out.push(block.slice(at + 5, end));
    at = end;
  }
  return out;
}
