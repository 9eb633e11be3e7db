// Made of server-features.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Reader, Writer } from './wire.ts';
import { readEmpty as readEmptyOfShared } from './shared.ts';

/** `event_store.client.server_features.ServerFeatures` */
export const ServerFeaturesService = {
  name: 'event_store.client.server_features.ServerFeatures',
  methods: {
    GetSupportedMethods: { path: '/event_store.client.server_features.ServerFeatures/GetSupportedMethods', hasManyRequests: false, hasManyResponses: false, readRequest: readEmptyOfShared, writeResponse: writeSupportedMethods },
  },
} as const;

export interface SupportedMethods {
  readonly methods: readonly SupportedMethod[];
  readonly eventStoreServerVersion: string;
}

export function readSupportedMethods(reader: Reader, end: number, depth: number): SupportedMethods {
  const message = { methods: [] as SupportedMethod[], eventStoreServerVersion: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.methods.push(readSupportedMethod(reader, wire.endOfElement(reader, depth + 1), depth + 1)); break;
      case 18: message.eventStoreServerVersion = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeSupportedMethods(message: SupportedMethods, writer: Writer): void {
  for (const one of message.methods) { writer.uint32(10).fork(); writeSupportedMethod(one, writer); writer.ldelim(); }
  if (message.eventStoreServerVersion !== '') { writer.uint32(18).string(message.eventStoreServerVersion); }
}

export interface SupportedMethod {
  readonly methodName: string;
  readonly serviceName: string;
  readonly features: readonly string[];
}

export function readSupportedMethod(reader: Reader, end: number, depth: number): SupportedMethod {
  const message = { methodName: '' as string, serviceName: '' as string, features: [] as string[] };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.methodName = wire.text(reader); break;
      case 18: message.serviceName = wire.text(reader); break;
      case 26: wire.addText(reader, message.features); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeSupportedMethod(message: SupportedMethod, writer: Writer): void {
  if (message.methodName !== '') { writer.uint32(10).string(message.methodName); }
  if (message.serviceName !== '') { writer.uint32(18).string(message.serviceName); }
  for (const one of message.features) { writer.uint32(26).string(one); }
}
