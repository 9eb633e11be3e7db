import { describe, expect, test } from 'vitest';
import { SkuaError } from '../../../../core/base/errors.ts';
import { grpcHarness } from '../../../grpc/harness.ts';
import { AS, basic } from '../../secured.ts';
import { audited } from '../audited.ts';

const AT = '/event_store.client.users.Users';
const OK = { status: 0, message: '', trailers: {}, received: [{}] };
const DENIED = { status: 7, message: 'Access Denied', trailers: { exception: 'access-denied' }, received: [] };
const UNHANDLED = { status: 2, message: 'Exception was thrown by handler.' };

const SAM = { login_name: 'sam', password: 's3cret', full_name: 'Sam Doe', groups: ['pickers'] };

describe('the life of a user', () => {
  test('created, looked at, changed, kept out, let in, deleted; the audit is told of each', async () => {
    const h = audited();
    const send = (method: string, options: object) => h.call(`${AT}/${method}`, { options } as never, AS.admin);
    expect(await send('Create', SAM)).toEqual(OK);
    expect(await send('Create', SAM)).toEqual(OK);
    h.security.entries.get('sam')!.user = {
      ...h.security.entries.get('sam')!.user,
      updatedMs: Date.UTC(2026, 10, 21, 7, 18, 51, 400),
      updatedTicks: 3654,
    };
    expect((await send('Details', { login_name: 'sam' })).received).toEqual([
      {
        user_details: {
          login_name: 'sam',
          full_name: 'Sam Doe',
          groups: ['pickers'],
          last_updated: { ticks_since_epoch: '17952455314003654' },
        },
      },
    ]);
    expect(await send('Update', { login_name: 'sam', password: '', full_name: 'Sam', groups: ['leads'] })).toEqual(OK);
    expect(await send('Disable', { login_name: 'sam' })).toEqual(OK);
    expect((await send('Details', { login_name: 'sam' })).received).toMatchObject([
      { user_details: { full_name: 'Sam', groups: ['leads'], disabled: true } },
    ]);
    expect(await send('Enable', { login_name: 'sam' })).toEqual(OK);
    expect(await send('ResetPassword', { login_name: 'sam', new_password: 'other' })).toEqual(OK);
    expect(
      await send('ChangePassword', { login_name: 'sam', current_password: 'other', new_password: 'third' }),
    ).toEqual(OK);
    expect(h.security.entries.get('sam')!.password).toBe('third');
    expect(await send('Delete', { login_name: 'sam' })).toEqual(OK);
    expect(h.told()).toEqual(
      ['create', 'create', 'update', 'disable', 'enable', 'reset-password', 'change-password', 'delete'].map((name) => [
        `user.${name}`,
        'success',
        'sam',
      ]),
    );
    expect(h.entries.filter(({ details }) => details !== null).map(({ details }) => details)).toEqual([
      { groups: ['pickers'] },
      { groups: ['pickers'] },
      { groups: ['leads'] },
    ]);
    expect(JSON.stringify(h.entries)).not.toMatch(/s3cret|third|other/);
  });

  test('all of them, one message each', async () => {
    const h = audited();
    const { received } = await h.call(`${AT}/Details`, { options: {} }, AS.admin);
    expect(
      received.map((message) => (message as { user_details: { login_name: string } }).user_details.login_name),
    ).toEqual(['kim', 'olga', 'ada']);
  });
});

describe('failures', () => {
  test('of users that are not there, or there already', async () => {
    const h = audited();
    const notFound = (name: string) => ({
      status: 5,
      message: `User '${name}' is not found.`,
      trailers: { exception: 'user-not-found', 'login-name': name },
    });
    for (const method of ['Update', 'Delete', 'Enable', 'Disable', 'Details', 'ResetPassword']) {
      expect(await h.call(`${AT}/${method}`, { options: { login_name: 'nö\nbody' } }, AS.admin), method).toMatchObject(
        notFound('nö\nbody'),
      );
    }
    expect(await h.call(`${AT}/Create`, { options: { login_name: 'kim', password: 'other' } }, AS.admin)).toEqual({
      status: 9,
      message: 'Conflict.',
      trailers: { exception: 'user-conflict', 'login-name': 'kim' },
      received: [],
    });
    for (const name of ['..', '$current'])
      expect(
        await h.call(`${AT}/Create`, { options: { login_name: name, password: 'other' } }, AS.admin),
      ).toMatchObject({ status: 3 });
    h.security.isLastAdministrator = true;
    expect(await h.call(`${AT}/Delete`, { options: { login_name: 'ada' } }, AS.admin)).toMatchObject({
      status: 9,
      trailers: {},
    });
  });

  test('of a stream that others write to again and again', async () => {
    const h = audited();
    h.security.users.enable = async () => {
      throw new SkuaError('wrong_expected_version', 'Again.', { stream: '$user-kim', expected: 0, actual: 1 });
    };
    expect(await h.call(`${AT}/Enable`, { options: { login_name: 'kim' } }, AS.admin)).toMatchObject({
      status: 4,
      message: 'Try again.',
      trailers: { exception: 'user-conflict', 'login-name': 'kim' },
    });
  });

  test('of requests without options', async () => {
    const h = audited();
    for (const method of [
      'Create',
      'Update',
      'Delete',
      'Enable',
      'Disable',
      'Details',
      'ChangePassword',
      'ResetPassword',
    ])
      expect(await h.call(`${AT}/${method}`, {}, AS.admin), method).toMatchObject(UNHANDLED);
  });
});

describe('rights', () => {
  const CHANGES = ['Create', 'Update', 'Delete', 'Enable', 'Disable', 'ResetPassword'];

  test.each(CHANGES)('%s is for administrators', async (method) => {
    const h = audited();
    for (const who of [AS.anonymous, AS.plain, AS.ops])
      expect(await h.call(`${AT}/${method}`, { options: { login_name: 'kim', password: 'x' } }, who)).toEqual(DENIED);
    expect(h.entries.map(({ outcome, target }) => [outcome, target])).toEqual([
      ['refused', null],
      ['refused', null],
      ['refused', null],
    ]);
    expect(h.security.entries.get('kim')).toMatchObject({ password: 'kim:pass', user: { isDisabled: false } });
  });

  test('users look at themselves, and at nobody else', async () => {
    const h = audited();
    expect((await h.call(`${AT}/Details`, { options: { login_name: 'kim' } }, AS.plain)).received).toHaveLength(1);
    for (const login_name of ['ada', 'nobody', ''])
      expect(await h.call(`${AT}/Details`, { options: { login_name } }, AS.plain)).toEqual(DENIED);
    expect(await h.call(`${AT}/Details`, { options: { login_name: 'kim' } }, AS.anonymous)).toEqual(DENIED);
  });

  test('whoever has a user changes a password that he knows', async () => {
    const h = audited();
    const change = (current_password: string, who: Record<string, string>) =>
      h.call(`${AT}/ChangePassword`, { options: { login_name: 'olga', current_password, new_password: 'new' } }, who);
    expect(await change('wrong', AS.ops)).toEqual(DENIED);
    expect(
      await h.call(
        `${AT}/ChangePassword`,
        { options: { login_name: 'nobody', current_password: 'wrong', new_password: 'new' } },
        AS.ops,
      ),
    ).toEqual(DENIED);
    expect(await change('olga-pass', AS.anonymous)).toEqual(DENIED);
    expect(await change('olga-pass', AS.plain)).toEqual(OK);
    expect(
      await h.call(`${AT}/Details`, { options: { login_name: 'olga' } }, { authorization: basic('olga', 'new') }),
    ).toMatchObject({ status: 0 });
  });

  test('where everybody may do everything there are no users', async () => {
    const h = grpcHarness();
    const call = h.open(`${AT}/Details`, [{ options: {} }]);
    expect(await call.ended).toEqual({ httpStatus: 404 });
  });
});
