// Made of users.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Reader, Writer } from './wire.ts';

/** `event_store.client.users.Users` */
export const UsersService = {
  name: 'event_store.client.users.Users',
  methods: {
    Create: { path: '/event_store.client.users.Users/Create', hasManyRequests: false, hasManyResponses: false, readRequest: readCreateReq, writeResponse: wire.writeNothing },
    Update: { path: '/event_store.client.users.Users/Update', hasManyRequests: false, hasManyResponses: false, readRequest: readCreateReq, writeResponse: wire.writeNothing },
    Delete: { path: '/event_store.client.users.Users/Delete', hasManyRequests: false, hasManyResponses: false, readRequest: readDeleteReq, writeResponse: wire.writeNothing },
    Disable: { path: '/event_store.client.users.Users/Disable', hasManyRequests: false, hasManyResponses: false, readRequest: readDeleteReq, writeResponse: wire.writeNothing },
    Enable: { path: '/event_store.client.users.Users/Enable', hasManyRequests: false, hasManyResponses: false, readRequest: readDeleteReq, writeResponse: wire.writeNothing },
    Details: { path: '/event_store.client.users.Users/Details', hasManyRequests: false, hasManyResponses: true, readRequest: readDeleteReq, writeResponse: writeDetailsResp },
    ChangePassword: { path: '/event_store.client.users.Users/ChangePassword', hasManyRequests: false, hasManyResponses: false, readRequest: readChangePasswordReq, writeResponse: wire.writeNothing },
    ResetPassword: { path: '/event_store.client.users.Users/ResetPassword', hasManyRequests: false, hasManyResponses: false, readRequest: readResetPasswordReq, writeResponse: wire.writeNothing },
  },
} as const;

export interface CreateReq {
  readonly options?: CreateReqOptions | undefined;
}

export function readCreateReq(reader: Reader, end: number, depth: number): CreateReq {
  const message = { options: undefined as CreateReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readCreateReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface CreateReqOptions {
  readonly loginName: string;
  readonly password: string;
  readonly fullName: string;
  readonly groups: readonly string[];
}

export function readCreateReqOptions(reader: Reader, end: number, depth: number): CreateReqOptions {
  const message = { loginName: '' as string, password: '' as string, fullName: '' as string, groups: [] as string[] };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.loginName = wire.text(reader); break;
      case 18: message.password = wire.text(reader); break;
      case 26: message.fullName = wire.text(reader); break;
      case 34: wire.addText(reader, message.groups); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface DeleteReq {
  readonly options?: DeleteReqOptions | undefined;
}

export function readDeleteReq(reader: Reader, end: number, depth: number): DeleteReq {
  const message = { options: undefined as DeleteReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readDeleteReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface DeleteReqOptions {
  readonly loginName: string;
}

export function readDeleteReqOptions(reader: Reader, end: number, depth: number): DeleteReqOptions {
  const message = { loginName: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.loginName = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface DetailsResp {
  readonly userDetails?: DetailsRespUserDetails | undefined;
}

export function writeDetailsResp(message: DetailsResp, writer: Writer): void {
  if (message.userDetails !== undefined) { writer.uint32(10).fork(); writeDetailsRespUserDetails(message.userDetails, writer); writer.ldelim(); }
}

export interface DetailsRespUserDetails {
  readonly loginName: string;
  readonly fullName: string;
  readonly groups: readonly string[];
  readonly lastUpdated?: DetailsRespUserDetailsDateTime | undefined;
  readonly disabled: boolean;
}

export function writeDetailsRespUserDetails(message: DetailsRespUserDetails, writer: Writer): void {
  if (message.loginName !== '') { writer.uint32(10).string(message.loginName); }
  if (message.fullName !== '') { writer.uint32(18).string(message.fullName); }
  for (const one of message.groups) { writer.uint32(26).string(one); }
  if (message.lastUpdated !== undefined) { writer.uint32(34).fork(); writeDetailsRespUserDetailsDateTime(message.lastUpdated, writer); writer.ldelim(); }
  if (message.disabled !== false) { writer.uint32(40).bool(message.disabled); }
}

export interface DetailsRespUserDetailsDateTime {
  readonly ticksSinceEpoch: number | bigint;
}

export function writeDetailsRespUserDetailsDateTime(message: DetailsRespUserDetailsDateTime, writer: Writer): void {
  if (Number(message.ticksSinceEpoch) !== 0) { writer.uint32(8); wire.writeInt64(writer, message.ticksSinceEpoch); }
}

export interface ChangePasswordReq {
  readonly options?: ChangePasswordReqOptions | undefined;
}

export function readChangePasswordReq(reader: Reader, end: number, depth: number): ChangePasswordReq {
  const message = { options: undefined as ChangePasswordReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readChangePasswordReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ChangePasswordReqOptions {
  readonly loginName: string;
  readonly currentPassword: string;
  readonly newPassword: string;
}

export function readChangePasswordReqOptions(reader: Reader, end: number, depth: number): ChangePasswordReqOptions {
  const message = { loginName: '' as string, currentPassword: '' as string, newPassword: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.loginName = wire.text(reader); break;
      case 18: message.currentPassword = wire.text(reader); break;
      case 26: message.newPassword = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ResetPasswordReq {
  readonly options?: ResetPasswordReqOptions | undefined;
}

export function readResetPasswordReq(reader: Reader, end: number, depth: number): ResetPasswordReq {
  const message = { options: undefined as ResetPasswordReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readResetPasswordReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export interface ResetPasswordReqOptions {
  readonly loginName: string;
  readonly newPassword: string;
}

export function readResetPasswordReqOptions(reader: Reader, end: number, depth: number): ResetPasswordReqOptions {
  const message = { loginName: '' as string, newPassword: '' as string };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.loginName = wire.text(reader); break;
      case 18: message.newPassword = wire.text(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}
