// Made of server-features.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Writer } from './wire.ts';

export interface SupportedMethods {
  readonly methods: readonly SupportedMethod[];
  readonly eventStoreServerVersion: string;
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

export function writeSupportedMethod(message: SupportedMethod, writer: Writer): void {
  if (message.methodName !== '') { writer.uint32(10).string(message.methodName); }
  if (message.serviceName !== '') { writer.uint32(18).string(message.serviceName); }
  for (const one of message.features) { writer.uint32(26).string(one); }
}

/** `event_store.client.server_features.ServerFeatures` */
export const ServerFeaturesService = {
  name: 'event_store.client.server_features.ServerFeatures',
  methods: {
    GetSupportedMethods: { path: '/event_store.client.server_features.ServerFeatures/GetSupportedMethods', hasManyRequests: false, hasManyResponses: false, readRequest: wire.readNothing, writeResponse: writeSupportedMethods },
  },
} as const;
