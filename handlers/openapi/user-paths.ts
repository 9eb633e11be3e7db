import {
  arrayOf,
  BOOLEAN,
  documentOf,
  failing,
  json,
  LOCATION,
  object,
  ok,
  oneOf,
  problems,
  ref,
  TEXT,
} from './schema-parts.ts';
import type { LinkDocument } from '../documents/link.ts';
import type {
  CurrentUserDocument,
  SuccessMembers,
  UserChangedDocument,
  UserDetailsDocument,
  UserDocument,
  UserMembers,
  UsersDocument,
} from '../documents/users.ts';
import type { MembersOf } from './schema-parts.ts';
import type { BodyDoc, OperationDoc, ParameterDoc, Schema } from '../http/route.ts';

/** The OpenAPI document of users. */

const TEXT_OR_NULL: Schema = { type: ['string', 'null'] };
const TIME_OR_NULL: Schema = { type: ['string', 'null'], format: 'date-time' };
const TYPE_ID: Schema = { type: 'integer', description: 'Means nothing to clients.' };

const FORMAT: Schema = {
  ...oneOf('strong', 'compatible', 'unknown'),
  description: 'In lists, if requested: how the password is stored. No password matches an unknown one.',
};

/** What every answer about users ends with. */
const ending: MembersOf<SuccessMembers> = {
  success: BOOLEAN,
  error: { type: 'string', const: 'Success' },
  msgTypeId: TYPE_ID,
  label: TEXT,
};
const user: MembersOf<UserMembers> = {
  loginName: TEXT,
  fullName: TEXT_OR_NULL,
  groups: arrayOf(TEXT),
  dateLastUpdated: TIME_OR_NULL,
  disabled: BOOLEAN,
};

export const USER_SCHEMAS: Readonly<Record<string, Schema>> = {
  User: documentOf<UserDocument>({
    ...user,
    links: arrayOf(
      documentOf<LinkDocument>({
        href: TEXT,
        rel: oneOf('reset-password', 'change-password', 'edit', 'delete', 'enable', 'disable'),
      }),
    ),
    'passwordFormat?': FORMAT,
  }),
  UserDetails: documentOf<UserDetailsDocument>({ data: ref('User'), ...ending }),
  UserList: documentOf<UsersDocument>({ data: arrayOf(ref('User')), ...ending }),
  CurrentUser: documentOf<CurrentUserDocument>({ data: documentOf<UserMembers>(user), ...ending }),
  UserChanged: documentOf<UserChangedDocument>({ loginName: TEXT, ...ending }),
  NewUser: object({
    loginName: TEXT,
    'fullName?': TEXT_OR_NULL,
    'groups?': { anyOf: [arrayOf(TEXT), { type: 'null' }] },
    password: TEXT,
  }),
  UserChange: object(
    { 'fullName?': TEXT_OR_NULL, 'groups?': { anyOf: [arrayOf(TEXT), { type: 'null' }] } },
    'Members left out stay unchanged, and null empties them: `{}` changes nothing.',
  ),
  NewPassword: object({ newPassword: TEXT }),
  PasswordChange: object({ currentPassword: TEXT, newPassword: TEXT }),
};

function body(schema: string, example: unknown): BodyDoc {
  return { required: true, content: json(ref(schema), example) };
}

const PASSWORD_FORMATS: ParameterDoc = {
  name: 'passwordFormats',
  in: 'query',
  description:
    "`true` adds to each user how the password is stored: `compatible` with EventStoreDB, or `strong`, which it can't read.",
  schema: BOOLEAN,
  example: true,
};
const LAST_ADMINISTRATOR = {
  409: failing('No one would be left who can log in as an administrator (`last_administrator`).'),
};
const CHANGED = ok('Done. It takes effect at once.', json(ref('UserChanged')));
const ABOUT_ONE = problems(400, 404, 406);
const WITH_BODY = problems(400, 404, 406, 413, 415);

export const USER_DOCS = {
  list: {
    summary: 'All users',
    description: 'In the order of their names.',
    parameters: [PASSWORD_FORMATS],
    responses: { 200: ok('The users.', json(ref('UserList'))), ...problems(400, 406) },
  },
  create: {
    summary: 'Create a user',
    description: 'Creating a user again with the same groups and password changes nothing.',
    body: body('NewUser', { loginName: 'ann', fullName: 'Ann Doe', groups: ['pickers'], password: 'secret1!' }),
    responses: {
      201: ok('The user was created.', json(ref('UserChanged')), { Location: LOCATION }),
      ...problems(400, 406, 413, 415),
      409: failing('A user of this name exists with another password or other groups.'),
    },
  },
  current: {
    summary: 'The caller',
    responses: { 200: ok('The user who calls.', json(ref('CurrentUser'))), ...ABOUT_ONE },
  },
  details: { summary: 'One user', responses: { 200: ok('The user.', json(ref('UserDetails'))), ...ABOUT_ONE } },
  update: {
    summary: 'Set full name and groups of a user',
    body: body('UserChange', { fullName: 'Kim D.', groups: ['pickers', 'leads'] }),
    responses: { 200: CHANGED, ...WITH_BODY, ...LAST_ADMINISTRATOR },
  },
  delete: { summary: 'Delete a user', responses: { 200: CHANGED, ...ABOUT_ONE, ...LAST_ADMINISTRATOR } },
  enable: { summary: 'Enable a user', responses: { 200: CHANGED, ...ABOUT_ONE } },
  disable: { summary: 'Disable a user', responses: { 200: CHANGED, ...ABOUT_ONE, ...LAST_ADMINISTRATOR } },
  resetPassword: {
    summary: 'Set the password of a user',
    body: body('NewPassword', { newPassword: 'secret2!' }),
    responses: { 200: CHANGED, ...WITH_BODY },
  },
  changePassword: {
    summary: "Change one's own password",
    body: body('PasswordChange', { currentPassword: 'secret1!', newPassword: 'secret2!' }),
    // The answer is the same for a user that is gone and for a wrong password.
    responses: { 200: CHANGED, ...problems(400, 406, 413, 415) },
  },
} as const satisfies Readonly<Record<string, OperationDoc>>;
