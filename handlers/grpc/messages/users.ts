// Made of users.proto by handlers/grpc/proto/generate.mjs: change that file, and run npm run grpc:messages.
import * as wire from './wire.ts';
import type { Reader, Writer } from './wire.ts';

const NOTHING = {};

/** `event_store.client.users.Users` */
export const UsersService = {
  name: 'event_store.client.users.Users',
  methods: {
    Create: { path: '/event_store.client.users.Users/Create', hasManyRequests: false, hasManyResponses: false, readRequest: readCreateReq, writeResponse: writeCreateResp },
    Update: { path: '/event_store.client.users.Users/Update', hasManyRequests: false, hasManyResponses: false, readRequest: readUpdateReq, writeResponse: writeUpdateResp },
    Delete: { path: '/event_store.client.users.Users/Delete', hasManyRequests: false, hasManyResponses: false, readRequest: readDeleteReq, writeResponse: writeDeleteResp },
    Disable: { path: '/event_store.client.users.Users/Disable', hasManyRequests: false, hasManyResponses: false, readRequest: readDisableReq, writeResponse: writeDisableResp },
    Enable: { path: '/event_store.client.users.Users/Enable', hasManyRequests: false, hasManyResponses: false, readRequest: readEnableReq, writeResponse: writeEnableResp },
    Details: { path: '/event_store.client.users.Users/Details', hasManyRequests: false, hasManyResponses: true, readRequest: readDetailsReq, writeResponse: writeDetailsResp },
    ChangePassword: { path: '/event_store.client.users.Users/ChangePassword', hasManyRequests: false, hasManyResponses: false, readRequest: readChangePasswordReq, writeResponse: writeChangePasswordResp },
    ResetPassword: { path: '/event_store.client.users.Users/ResetPassword', hasManyRequests: false, hasManyResponses: false, readRequest: readResetPasswordReq, writeResponse: writeResetPasswordResp },
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

export function writeCreateReq(message: CreateReq, writer: Writer): void {
  if (message.options !== undefined) { writer.uint32(10).fork(); writeCreateReqOptions(message.options, writer); writer.ldelim(); }
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

export function writeCreateReqOptions(message: CreateReqOptions, writer: Writer): void {
  if (message.loginName !== '') { writer.uint32(10).string(message.loginName); }
  if (message.password !== '') { writer.uint32(18).string(message.password); }
  if (message.fullName !== '') { writer.uint32(26).string(message.fullName); }
  for (const one of message.groups) { writer.uint32(34).string(one); }
}

export interface CreateResp {
}

export function readCreateResp(reader: Reader, end: number, depth: number): CreateResp {
  while (reader.pos < end) {
    const tag = reader.uint32();
    wire.skip(reader, tag, depth);
  }
  wire.atEnd(reader, end);
  return NOTHING;
}

export function writeCreateResp(_message: CreateResp, _writer: Writer): void {
}

export interface UpdateReq {
  readonly options?: UpdateReqOptions | undefined;
}

export function readUpdateReq(reader: Reader, end: number, depth: number): UpdateReq {
  const message = { options: undefined as UpdateReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readUpdateReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeUpdateReq(message: UpdateReq, writer: Writer): void {
  if (message.options !== undefined) { writer.uint32(10).fork(); writeUpdateReqOptions(message.options, writer); writer.ldelim(); }
}

export interface UpdateReqOptions {
  readonly loginName: string;
  readonly password: string;
  readonly fullName: string;
  readonly groups: readonly string[];
}

export function readUpdateReqOptions(reader: Reader, end: number, depth: number): UpdateReqOptions {
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

export function writeUpdateReqOptions(message: UpdateReqOptions, writer: Writer): void {
  if (message.loginName !== '') { writer.uint32(10).string(message.loginName); }
  if (message.password !== '') { writer.uint32(18).string(message.password); }
  if (message.fullName !== '') { writer.uint32(26).string(message.fullName); }
  for (const one of message.groups) { writer.uint32(34).string(one); }
}

export interface UpdateResp {
}

export function readUpdateResp(reader: Reader, end: number, depth: number): UpdateResp {
  while (reader.pos < end) {
    const tag = reader.uint32();
    wire.skip(reader, tag, depth);
  }
  wire.atEnd(reader, end);
  return NOTHING;
}

export function writeUpdateResp(_message: UpdateResp, _writer: Writer): void {
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

export function writeDeleteReq(message: DeleteReq, writer: Writer): void {
  if (message.options !== undefined) { writer.uint32(10).fork(); writeDeleteReqOptions(message.options, writer); writer.ldelim(); }
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

export function writeDeleteReqOptions(message: DeleteReqOptions, writer: Writer): void {
  if (message.loginName !== '') { writer.uint32(10).string(message.loginName); }
}

export interface DeleteResp {
}

export function readDeleteResp(reader: Reader, end: number, depth: number): DeleteResp {
  while (reader.pos < end) {
    const tag = reader.uint32();
    wire.skip(reader, tag, depth);
  }
  wire.atEnd(reader, end);
  return NOTHING;
}

export function writeDeleteResp(_message: DeleteResp, _writer: Writer): void {
}

export interface EnableReq {
  readonly options?: EnableReqOptions | undefined;
}

export function readEnableReq(reader: Reader, end: number, depth: number): EnableReq {
  const message = { options: undefined as EnableReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readEnableReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeEnableReq(message: EnableReq, writer: Writer): void {
  if (message.options !== undefined) { writer.uint32(10).fork(); writeEnableReqOptions(message.options, writer); writer.ldelim(); }
}

export interface EnableReqOptions {
  readonly loginName: string;
}

export function readEnableReqOptions(reader: Reader, end: number, depth: number): EnableReqOptions {
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

export function writeEnableReqOptions(message: EnableReqOptions, writer: Writer): void {
  if (message.loginName !== '') { writer.uint32(10).string(message.loginName); }
}

export interface EnableResp {
}

export function readEnableResp(reader: Reader, end: number, depth: number): EnableResp {
  while (reader.pos < end) {
    const tag = reader.uint32();
    wire.skip(reader, tag, depth);
  }
  wire.atEnd(reader, end);
  return NOTHING;
}

export function writeEnableResp(_message: EnableResp, _writer: Writer): void {
}

export interface DisableReq {
  readonly options?: DisableReqOptions | undefined;
}

export function readDisableReq(reader: Reader, end: number, depth: number): DisableReq {
  const message = { options: undefined as DisableReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readDisableReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeDisableReq(message: DisableReq, writer: Writer): void {
  if (message.options !== undefined) { writer.uint32(10).fork(); writeDisableReqOptions(message.options, writer); writer.ldelim(); }
}

export interface DisableReqOptions {
  readonly loginName: string;
}

export function readDisableReqOptions(reader: Reader, end: number, depth: number): DisableReqOptions {
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

export function writeDisableReqOptions(message: DisableReqOptions, writer: Writer): void {
  if (message.loginName !== '') { writer.uint32(10).string(message.loginName); }
}

export interface DisableResp {
}

export function readDisableResp(reader: Reader, end: number, depth: number): DisableResp {
  while (reader.pos < end) {
    const tag = reader.uint32();
    wire.skip(reader, tag, depth);
  }
  wire.atEnd(reader, end);
  return NOTHING;
}

export function writeDisableResp(_message: DisableResp, _writer: Writer): void {
}

export interface DetailsReq {
  readonly options?: DetailsReqOptions | undefined;
}

export function readDetailsReq(reader: Reader, end: number, depth: number): DetailsReq {
  const message = { options: undefined as DetailsReqOptions | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.options = readDetailsReqOptions(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
}

export function writeDetailsReq(message: DetailsReq, writer: Writer): void {
  if (message.options !== undefined) { writer.uint32(10).fork(); writeDetailsReqOptions(message.options, writer); writer.ldelim(); }
}

export interface DetailsReqOptions {
  readonly loginName: string;
}

export function readDetailsReqOptions(reader: Reader, end: number, depth: number): DetailsReqOptions {
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

export function writeDetailsReqOptions(message: DetailsReqOptions, writer: Writer): void {
  if (message.loginName !== '') { writer.uint32(10).string(message.loginName); }
}

export interface DetailsResp {
  readonly userDetails?: DetailsRespUserDetails | undefined;
}

export function readDetailsResp(reader: Reader, end: number, depth: number): DetailsResp {
  const message = { userDetails: undefined as DetailsRespUserDetails | undefined };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.userDetails = readDetailsRespUserDetails(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
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

export function readDetailsRespUserDetails(reader: Reader, end: number, depth: number): DetailsRespUserDetails {
  const message = { loginName: '' as string, fullName: '' as string, groups: [] as string[], lastUpdated: undefined as DetailsRespUserDetailsDateTime | undefined, disabled: false as boolean };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 10: message.loginName = wire.text(reader); break;
      case 18: message.fullName = wire.text(reader); break;
      case 26: wire.addText(reader, message.groups); break;
      case 34: message.lastUpdated = readDetailsRespUserDetailsDateTime(reader, wire.endOf(reader, depth + 1), depth + 1); break;
      case 40: message.disabled = reader.bool(); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
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

export function readDetailsRespUserDetailsDateTime(reader: Reader, end: number, depth: number): DetailsRespUserDetailsDateTime {
  const message = { ticksSinceEpoch: 0 as number | bigint };
  while (reader.pos < end) {
    const tag = reader.uint32();
    switch (tag) {
      case 8: message.ticksSinceEpoch = wire.int64(reader); break;
      default: wire.skip(reader, tag, depth);
    }
  }
  wire.atEnd(reader, end);
  return message;
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

export function writeChangePasswordReq(message: ChangePasswordReq, writer: Writer): void {
  if (message.options !== undefined) { writer.uint32(10).fork(); writeChangePasswordReqOptions(message.options, writer); writer.ldelim(); }
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

export function writeChangePasswordReqOptions(message: ChangePasswordReqOptions, writer: Writer): void {
  if (message.loginName !== '') { writer.uint32(10).string(message.loginName); }
  if (message.currentPassword !== '') { writer.uint32(18).string(message.currentPassword); }
  if (message.newPassword !== '') { writer.uint32(26).string(message.newPassword); }
}

export interface ChangePasswordResp {
}

export function readChangePasswordResp(reader: Reader, end: number, depth: number): ChangePasswordResp {
  while (reader.pos < end) {
    const tag = reader.uint32();
    wire.skip(reader, tag, depth);
  }
  wire.atEnd(reader, end);
  return NOTHING;
}

export function writeChangePasswordResp(_message: ChangePasswordResp, _writer: Writer): void {
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

export function writeResetPasswordReq(message: ResetPasswordReq, writer: Writer): void {
  if (message.options !== undefined) { writer.uint32(10).fork(); writeResetPasswordReqOptions(message.options, writer); writer.ldelim(); }
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

export function writeResetPasswordReqOptions(message: ResetPasswordReqOptions, writer: Writer): void {
  if (message.loginName !== '') { writer.uint32(10).string(message.loginName); }
  if (message.newPassword !== '') { writer.uint32(18).string(message.newPassword); }
}

export interface ResetPasswordResp {
}

export function readResetPasswordResp(reader: Reader, end: number, depth: number): ResetPasswordResp {
  while (reader.pos < end) {
    const tag = reader.uint32();
    wire.skip(reader, tag, depth);
  }
  wire.atEnd(reader, end);
  return NOTHING;
}

export function writeResetPasswordResp(_message: ResetPasswordResp, _writer: Writer): void {
}
