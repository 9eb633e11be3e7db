// Made of users.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Writer } from './wire.ts';

export interface CreateReq {
  readonly options?: CreateReqOptions | undefined;
}

export const readCreateReq = wire.reader((): wire.Open<CreateReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readCreateReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface CreateReqOptions {
  readonly loginName: string;
  readonly password: string;
  readonly fullName: string;
  readonly groups: readonly string[];
}

export const readCreateReqOptions = wire.reader((): wire.Open<CreateReqOptions> => ({ loginName: '', password: '', fullName: '', groups: [] }), {
  10: (message, reader) => { message.loginName = wire.text(reader); },
  18: (message, reader) => { message.password = wire.text(reader); },
  26: (message, reader) => { message.fullName = wire.text(reader); },
  34: (message, reader) => { wire.addText(reader, message.groups); },
});

export interface DeleteReq {
  readonly options?: DeleteReqOptions | undefined;
}

export const readDeleteReq = wire.reader((): wire.Open<DeleteReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readDeleteReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface DeleteReqOptions {
  readonly loginName: string;
}

export const readDeleteReqOptions = wire.reader((): wire.Open<DeleteReqOptions> => ({ loginName: '' }), {
  10: (message, reader) => { message.loginName = wire.text(reader); },
});

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

export const readChangePasswordReq = wire.reader((): wire.Open<ChangePasswordReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readChangePasswordReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface ChangePasswordReqOptions {
  readonly loginName: string;
  readonly currentPassword: string;
  readonly newPassword: string;
}

export const readChangePasswordReqOptions = wire.reader((): wire.Open<ChangePasswordReqOptions> => ({ loginName: '', currentPassword: '', newPassword: '' }), {
  10: (message, reader) => { message.loginName = wire.text(reader); },
  18: (message, reader) => { message.currentPassword = wire.text(reader); },
  26: (message, reader) => { message.newPassword = wire.text(reader); },
});

export interface ResetPasswordReq {
  readonly options?: ResetPasswordReqOptions | undefined;
}

export const readResetPasswordReq = wire.reader((): wire.Open<ResetPasswordReq> => ({ options: undefined }), {
  10: (message, reader, depth) => { message.options = readResetPasswordReqOptions(reader, wire.endOf(reader, depth), depth); },
});

export interface ResetPasswordReqOptions {
  readonly loginName: string;
  readonly newPassword: string;
}

export const readResetPasswordReqOptions = wire.reader((): wire.Open<ResetPasswordReqOptions> => ({ loginName: '', newPassword: '' }), {
  10: (message, reader) => { message.loginName = wire.text(reader); },
  18: (message, reader) => { message.newPassword = wire.text(reader); },
});

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
