import { useState } from 'preact/hooks';
import { del, post } from '../../api/page-client.ts';
import { usePolled } from '../../api/polled.ts';
import { errorOf } from '../../api/problem-text.ts';
import { session } from '../../api/page-session.ts';
import { setQuery } from '../../lib/router.ts';
import { Badge, Status } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { confirm } from '../../parts/confirm.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { Loading } from '../../parts/loading.tsx';
import { Menu } from '../../parts/menu.tsx';
import { SearchField } from '../../parts/search-field.tsx';
import { Name } from '../../parts/name.tsx';
import { Table } from '../../parts/table.tsx';
import type { Column } from '../../parts/table.tsx';
import { toast } from '../../parts/toast.tsx';
import type { ViewProps } from '../../views.ts';
import { EditUser, NewUser, ResetPassword } from './user-dialogs.tsx';
import { userPath } from './user-groups.ts';
import type { UserDocument, UsersDocument } from '../../../../../handlers/documents/users.ts';

const EVERY_MS = 30_000;

type Shown = { readonly kind: 'new' } | { readonly kind: 'edit' | 'password'; readonly user: UserDocument } | null;

/** The users of the node, and what each may use it for. */
export default function Users({ query }: ViewProps) {
  if (session.value?.hasSecurity === false)
    return (
      <>
        <ViewHead title="Users" />
        <Card>
          <EmptyState icon="shield" title="This node runs without security">
            Anyone who can reach it can do anything, so there are no users. Start it without <code>--insecure</code> to
            have some.
          </EmptyState>
        </Card>
      </>
    );
  return <List query={query} />;
}

function List({ query }: { readonly query: URLSearchParams }) {
  const polled = usePolled<UsersDocument>('/users', EVERY_MS);
  const [shown, setShown] = useState<Shown>(null);
  const close = () => setShown(null);
  const done = async (text: string) => {
    setShown(null);
    toast(text);
    await polled.refresh();
  };
  const filter = (query.get('q') ?? '').trim().toLowerCase();

  const enable = async (user: UserDocument) => {
    try {
      await post(userPath(user.loginName, 'enable'));
      await done(`${user.loginName} may log in again.`);
    } catch (thrown) {
      toast(errorOf(thrown).message, 'bad');
    }
  };
  const disable = async (user: UserDocument) => {
    const isDone = await confirm({
      title: 'Disable user',
      text: (
        <>
          <strong class="break">
            <Name text={user.loginName} isWhole />
          </strong>{' '}
          can no longer log in or send requests. The user is kept and can be enabled again.
        </>
      ),
      action: 'Disable',
      run: async () => void (await post(userPath(user.loginName, 'disable'))),
    });
    if (isDone) await done(`${user.loginName} is disabled.`);
  };
  const remove = async (user: UserDocument) => {
    const isDone = await confirm({
      title: 'Delete user',
      isDanger: true,
      typed: user.loginName,
      text: (
        <>
          <strong class="break">
            <Name text={user.loginName} isWhole />
          </strong>{' '}
          is deleted, which can't be undone. Access lists of streams that name the user stay as they are.
        </>
      ),
      action: 'Delete user',
      run: async () => void (await del(userPath(user.loginName))),
    });
    if (isDone) await done(`${user.loginName} is deleted.`);
  };

  const me = session.value?.user;
  const columns: readonly Column<UserDocument>[] = [
    {
      name: 'login',
      title: 'User name',
      width: '24%',
      isName: true,
      render: (user) => (
        <span class="row">
          <strong class="truncate" title={user.loginName}>
            <Name text={user.loginName} />
          </strong>
          {user.loginName === me && <Badge tone="accent">you</Badge>}
          {user.disabled && (
            <span class="only-narrow">
              <Badge>disabled</Badge>
            </span>
          )}
        </span>
      ),
      sortBy: ({ loginName }) => loginName,
    },
    {
      name: 'name',
      title: 'Full name',
      width: '22%',
      isMinor: true,
      isName: true,
      render: ({ fullName }) =>
        fullName === null || fullName === '' ? (
          <span class="faint">–</span>
        ) : (
          <span class="truncate" title={fullName}>
            <Name text={fullName} />
          </span>
        ),
      sortBy: ({ fullName }) => fullName,
    },
    {
      name: 'groups',
      title: 'Groups',
      width: '30%',
      isName: true,
      render: ({ groups }) =>
        groups.length === 0 ? (
          <span class="faint">–</span>
        ) : (
          <span class="row wrap">
            {groups.map((group) => (
              <Badge key={group} title={group} tone={group === '$admins' ? 'info' : 'plain'}>
                {group}
              </Badge>
            ))}
          </span>
        ),
      sortBy: ({ groups }) => groups.join(),
    },
    {
      name: 'state',
      title: 'State',
      isMinor: true,
      render: ({ disabled }) => (disabled ? <Status>Disabled</Status> : <Status tone="ok">Active</Status>),
      sortBy: ({ disabled }) => Number(disabled),
    },
    {
      name: 'actions',
      title: <span class="hidden-visually">Actions</span>,
      width: '4rem',
      align: 'end',
      render: (user) => (
        <Menu
          label={`Actions for ${user.loginName}`}
          items={[
            { label: 'Edit', icon: 'edit', onSelect: () => setShown({ kind: 'edit', user }) },
            { label: 'Reset password', icon: 'key', onSelect: () => setShown({ kind: 'password', user }) },
            user.disabled
              ? { label: 'Enable', icon: 'check', onSelect: () => void enable(user) }
              : { label: 'Disable', icon: 'lock', onSelect: () => void disable(user) },
            { label: 'Delete', icon: 'trash', isDanger: true, onSelect: () => void remove(user) },
          ]}
        />
      ),
    },
  ];
  return (
    <>
      <ViewHead
        title="Users"
        about="Who may use the node. Groups and the access lists of streams decide what a user may do."
        actions={
          <Button kind="primary" icon="plus" onClick={() => setShown({ kind: 'new' })}>
            New user
          </Button>
        }
      />
      <div class="toolbar">
        <SearchField
          label="Find users"
          placeholder="Name or group"
          value={query.get('q') ?? ''}
          onInput={(text) => setQuery({ q: text })}
        />
      </div>
      <Loading polled={polled} what="The users">
        {({ data }) => {
          const found = data.filter(({ loginName, fullName, groups }) =>
            `${loginName} ${fullName ?? ''} ${groups.join(' ')}`.toLowerCase().includes(filter),
          );
          return (
            <Card isFlush>
              <Table
                label="Users"
                columns={columns}
                rows={found}
                keyOf={({ loginName }) => loginName}
                sort={{ name: 'login', isDown: false }}
                onOpen={(user) => setShown({ kind: 'edit', user })}
                empty={
                  <EmptyState
                    icon="search"
                    title="No users match"
                    action={<Button onClick={() => setQuery({ q: null })}>Show all</Button>}
                  />
                }
              />
            </Card>
          );
        }}
      </Loading>
      <NewUser isOpen={shown?.kind === 'new'} onClose={close} onDone={done} />
      <EditUser user={shown?.kind === 'edit' ? shown.user : null} onClose={close} onDone={done} />
      <ResetPassword user={shown?.kind === 'password' ? shown.user : null} onClose={close} onDone={done} />
    </>
  );
}
