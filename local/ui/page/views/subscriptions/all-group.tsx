import { session } from '../../api/page-session.ts';
import { Code } from '../../parts/code.tsx';
import { Notice } from '../../parts/empty-state.tsx';

/**
 * How a group that takes the whole log is made: no request over HTTP makes one, so the page can't. `group`: its name,
 * as far as it is typed.
 */
export function AllGroup({ group }: { readonly group: string }) {
  const isTls = location.protocol === 'https:';
  const user = session.value?.user ?? null;
  return (
    <div class="stack">
      <Notice
        title={
          <>
            A group of <code>$all</code> is created over gRPC
          </>
        }
      >
        There is no HTTP request for it. Run this program once, or make the same call with a client in another language.
        The group then appears in the list and can be changed, reset and deleted here like any other.
      </Notice>
      {!isTls && user !== null && (
        <Notice tone="warn" title="This node would refuse the call">
          gRPC clients send no password without TLS, and this node has users but no TLS. Give it a certificate, or start
          it with <code class="nowrap">--insecure</code> while you do this: the group stays.
        </Notice>
      )}
      <Code text={programFor(group === '' ? 'my-group' : group, isTls ? user : null, isTls)} name="make-group.mjs" />
      <ul class="muted small">
        <li>
          It starts at the first event. With <code>END</code> for <code>START</code> it starts with events written from
          now on.
        </li>
        <li>
          With <code>{"{ filter: streamNameFilter({ prefixes: ['order-'] }) }"}</code> as the third argument it takes
          only events of streams with that prefix. A filter can't be changed later.
        </li>
        {isTls && (
          <li>
            With your own certificate authority, end the address with <code>?tlsCaFile=ca.pem</code>.
          </li>
        )}
        <li>
          The call is{' '}
          <code class="break">event_store.client.persistent_subscriptions.PersistentSubscriptions/Create</code> with{' '}
          <code>options.all</code>.
        </li>
      </ul>
    </div>
  );
}

/**
 * A program that makes a group at this node. What is typed stands in a literal, whatever it holds; the page knows no
 * password.
 */
function programFor(group: string, user: string | null, isTls: boolean): string {
  const address = `kurrentdb://${user === null ? '' : `${encodeURIComponent(user)}:PASSWORD@`}${location.host}${isTls ? '' : '?tls=false'}`;
  return [
    '// npm install @kurrent/kurrentdb-client',
    "import { KurrentDBClient, persistentSubscriptionToAllSettingsFromDefaults, START } from '@kurrent/kurrentdb-client';",
    '',
    `const client = KurrentDBClient.connectionString(${JSON.stringify(address)});`,
    `await client.createPersistentSubscriptionToAll(${JSON.stringify(group)}, persistentSubscriptionToAllSettingsFromDefaults({ startFrom: START }));`,
    'await client.dispose();',
    '',
  ].join('\n');
}
