import { defineCommand } from '../cli/command.ts';
import { userListOptions, userResetPasswordOptions } from './options-command.ts';

/** `skua user ...`: what is seldom done, or can't be done over HTTP. All else about users is: see /openapi.json. */

export const userListCommand = defineCommand({
  name: 'user list',
  summary: 'Show the users, their groups, and how their passwords are stored',
  details:
    "Of a running node, as one of its administrators, or of the directory of a stopped one. A password is compatible (PBKDF2: EventStoreDB reads it too), strong (scrypt: it does not), or unknown, which no password matches. If PasswordFormat is compatible, a user's next login stores a strong password again in the compatible format.",
  options: userListOptions,
  examples: [
    { line: 'skua user list', does: 'Ask the node on this machine' },
    { line: 'skua user list --db ./data --json', does: 'Read the directory of a stopped node; for a program' },
  ],
  run: async (input, io) => (await import('./run-user.ts')).runUserList(input, io),
});

export const userResetPasswordCommand = defineCommand({
  name: 'user reset-password',
  summary: 'Set the password of a user in the directory of a stopped node',
  details:
    'For when no one can log in any more. The password is read from a file, from standard input, or typed twice without being shown; it is not an argument, because others could see it. While the node runs, an administrator can use POST /users/LOGIN/command/reset-password.',
  positionals: [{ name: 'LOGIN', help: 'the login name of the user' }],
  options: userResetPasswordOptions,
  examples: [
    {
      line: 'skua user reset-password admin --db ./data --password-file secret',
      does: 'Read the password from a file; otherwise it is typed',
    },
    {
      line: 'skua user reset-password ops --db ./data --administrator --enable < secret',
      does: 'Restore access when no administrator is left',
    },
  ],
  run: async (input, io) =>
    (await import('../audit/command-audit.ts')).withAudit(
      { file: input.options['audit-log'], action: 'user.reset-password', target: input.positionals[0]! },
      io,
      async () => (await import('./run-user.ts')).runUserResetPassword(input, io),
    ),
});
