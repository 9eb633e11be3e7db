import { useEffect, useState } from 'preact/hooks';
import { del, post, put } from '../../api/page-client.ts';
import { errorOf } from '../../api/problem-text.ts';
import { usePolled } from '../../api/polled.ts';
import { durationText, numberText } from '../../lib/format.ts';
import { historyOf, rateOf, record } from '../../lib/history.ts';
import { goTo, setQuery } from '../../lib/router.ts';
import { Num } from '../../parts/amount.tsx';
import { Badge } from '../../parts/badge.tsx';
import { Button } from '../../parts/button.tsx';
import { Card, ViewHead } from '../../parts/card.tsx';
import { Command } from '../../parts/command.tsx';
import { confirm } from '../../parts/confirm.tsx';
import { Definitions } from '../../parts/definitions.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { EmptyState, Notice } from '../../parts/empty-state.tsx';
import { Name } from '../../parts/name.tsx';
import { Field, Form } from '../../parts/form.tsx';
import { Loading } from '../../parts/loading.tsx';
import { Menu } from '../../parts/menu.tsx';
import { Rate } from '../../parts/rate.tsx';
import { Stat } from '../../parts/stat.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import type { ViewProps } from '../../views.ts';
import { CallsChart } from './calls-chart.tsx';
import { ConnectorForm } from './connector-form.tsx';
import { callsOf, connectorPath, countOf, outcomeOf, publicUrl, SORTS, stateOf, useCalls } from './connector-list.ts';
import type { Calls, Connector } from './connector-list.ts';
import { CountedElsewhere } from './counted-elsewhere.tsx';
import { Rejections } from './rejections.tsx';
import { schemeName, schemeOf } from './scheme-fields.ts';

const CONNECTOR_EVERY_MS = 3_000;

/** One connector: its calls, what was refused, and its settings. */
export default function Webhook({ params, query }: ViewProps) {
  const id = params['connector']!;
  const polled = usePolled<Connector>(`${connectorPath(id)}?includeSettings=true`, CONNECTOR_EVERY_MS);
  const all = useCalls();
  const [isRenaming, setRenaming] = useState(false);
  const [warnings, setWarnings] = useState<readonly string[]>([]);
  const [busy, setBusy] = useState<string | null>(null);
  const connector = polled.data.value;
  const calls = callsOf(all.data.value, id);
  useMeasured(id, calls, all.atMs.value);
  if (polled.error.value?.status === 404)
    return (
      <Card>
        <EmptyState
          isWhole
          icon="webhook"
          title="There is no such connector"
          action={<Button href="/webhooks">All connectors</Button>}
        >
          <span class="break">
            No connector{' '}
            <strong>
              <Name text={id} isWhole />
            </strong>{' '}
            on this node. It may have been deleted.
          </span>
        </EmptyState>
      </Card>
    );
  const command = async (name: 'start' | 'stop' | 'reset', done: string) => {
    setBusy(name);
    try {
      await post(`${connectorPath(id)}/${name}`);
      toast(done);
    } catch (thrown) {
      toast(errorOf(thrown).message, 'bad');
    }
    setBusy(null);
    await polled.refresh();
  };
  const isRunning = connector !== null && stateOf(connector).isRunning;
  const tab = query.get('tab') ?? 'overview';
  return (
    <>
      <ViewHead
        title={connector?.name ?? id}
        about={
          <>
            Connector <code>{id}</code>
          </>
        }
        actions={
          connector !== null && (
            <>
              {isRunning ? (
                <Button icon="stop" isBusy={busy === 'stop'} onClick={() => void command('stop', `${id} is stopped`)}>
                  Stop
                </Button>
              ) : (
                <Button
                  kind="primary"
                  icon="play"
                  isBusy={busy === 'start'}
                  onClick={() => void command('start', `${id} runs`)}
                >
                  Start
                </Button>
              )}
              <Menu
                label="More for this connector"
                items={[
                  { label: 'Rename', icon: 'edit', onSelect: () => setRenaming(true) },
                  {
                    label: 'Reset',
                    icon: 'refresh',
                    isDisabled: isRunning,
                    onSelect: () => void reset(id, () => command('reset', `${id} was reset, and runs`)),
                  },
                  { label: 'Delete', icon: 'trash', isDanger: true, onSelect: () => void remove(id, isRunning) },
                ]}
              />
            </>
          )
        }
      >
        {connector !== null && <Badge tone={stateOf(connector).tone}>{stateOf(connector).word}</Badge>}
      </ViewHead>
      {connector?.errorDetails !== undefined && (
        <Notice tone="bad" title="It could not run">
          {connector.errorDetails.message}
        </Notice>
      )}
      {warnings.map((text) => (
        <Notice
          key={text}
          tone="warn"
          action={<Button isSmall kind="quiet" icon="close" label="Close" onClick={() => setWarnings([])} />}
        >
          {text}
        </Notice>
      ))}
      <Loading polled={polled} what="The connector" lines={8}>
        {(found) => (
          <Tabs
            label="Sections of the connector"
            tabs={[
              { name: 'overview', label: 'Overview' },
              { name: 'rejections', label: 'Rejections' },
              { name: 'settings', label: 'Script and settings' },
            ]}
            current={tab}
            onChange={(name) => setQuery({ tab: name === 'overview' ? null : name })}
          >
            {tab === 'rejections' ? (
              <Rejections id={id} />
            ) : // What is being typed stays, whatever is polled meanwhile; saved settings begin a new form.
            tab === 'settings' ? (
              <ConnectorForm
                key={found.settingsUpdateTime}
                connector={found}
                onDone={(given) => {
                  setWarnings(given);
                  void polled.refresh();
                }}
              />
            ) : (
              <Overview connector={found} calls={calls} />
            )}
          </Tabs>
        )}
      </Loading>
      <Dialog title={`Rename ${id}`} isOpen={isRenaming} onClose={() => setRenaming(false)}>
        <Form
          onSubmit={async ({ name }) => {
            await put(`${connectorPath(id)}/rename`, { name });
            setRenaming(false);
            await polled.refresh();
          }}
          buttons={(isBusy) => (
            <>
              <Button onClick={() => setRenaming(false)}>Cancel</Button>
              <Button type="submit" kind="primary" isBusy={isBusy}>
                Rename
              </Button>
            </>
          )}
        >
          <Field
            name="name"
            label="Name"
            value={connector?.name ?? ''}
            isRequired
            isFocused
            maxLength={50}
            about="3 to 50 characters, for display. The id and the address do not change."
          />
        </Form>
      </Dialog>
    </>
  );
}

async function reset(id: string, run: () => Promise<void>): Promise<void> {
  const isYes = await confirm({
    title: `Reset ${id}`,
    action: 'Reset and start',
    text: 'A webhook connector has no checkpoint: a reset restarts it as configured.',
  });
  if (isYes) await run();
}

async function remove(id: string, isRunning: boolean): Promise<void> {
  const isDone = await confirm({
    title: 'Delete this connector',
    action: 'Delete connector',
    isDanger: true,
    typed: id,
    text: (
      <>
        {isRunning && <>It is stopped first. </>}Senders get a 404 from then on. Its settings, secrets, rejections and
        delivery history are deleted; events it has written stay.
      </>
    ),
    run: async () => {
      if (isRunning) await post(`${connectorPath(id)}/stop`);
      await del(connectorPath(id));
    },
  });
  if (!isDone) return;
  toast(`${id} is deleted`);
  goTo('/webhooks');
}

function useMeasured(id: string, calls: Calls, atMs: number | null): void {
  useEffect(() => {
    if (atMs !== null)
      record(`webhook ${id}`, atMs, {
        taken: countOf(calls, 'taken'),
        skipped: countOf(calls, 'skipped'),
        refused: countOf(calls, 'refused'),
      });
  }, [id, atMs]);
}

function Overview({ connector, calls }: { readonly connector: Connector; readonly calls: Calls }) {
  const history = historyOf(`webhook ${connector.connectorId}`).value;
  const rates = (['taken', 'skipped', 'refused'] as const).map((name) => ({
    label: SORTS[name],
    values: rateOf(history, history.values[name]),
  }));
  const refused = countOf(calls, 'refused');
  const outcomes = Object.entries(calls.outcomes)
    .filter(([, count]) => count > 0)
    .sort(([, one], [, other]) => other - one);
  return (
    <div class="stack">
      <Address connector={connector} />
      <CountedElsewhere />
      <div class="tiles">
        <Stat
          label="Calls"
          value={<Rate value={calls.callsPerSecond} />}
          note={`${numberText(calls.calls)} since the node started`}
        />
        <Stat label="Accepted" value={<Num value={countOf(calls, 'taken')} />} note="written, or being written" />
        <Stat label="Skipped" value={<Num value={countOf(calls, 'skipped')} />} note="the script returned no stream" />
        <Stat
          label="Refused"
          value={<Num value={refused} />}
          note={refused === 0 ? 'none' : 'see Rejections'}
          {...(refused > 0 && { tone: 'warn' as const })}
        />
      </div>
      <CallsChart
        id={connector.connectorId}
        seen={history}
        rates={rates}
        isIdle={calls.calls === 0 && calls.callsPerSecond !== undefined}
      />
      <div class="columns">
        <Card title="Calls by outcome" note="since the node started">
          {outcomes.length === 0 ? (
            <p class="muted">No calls yet.</p>
          ) : (
            <Definitions items={outcomes.map(([name, count]) => [outcomeOf(name).text, <Num value={count} />])} />
          )}
        </Card>
        <Card title="Connector">
          <Definitions
            items={[
              [
                'State',
                <>
                  {stateOf(connector).word}{' '}
                  <span class="faint">
                    since <Time at={connector.stateUpdateTime} show="exact" />
                  </span>
                </>,
              ],
              [
                'Answer time, p99',
                calls.p99Seconds === null ? <span class="faint">–</span> : durationText(calls.p99Seconds * 1_000),
              ],
              ['Settings changed', <Time at={connector.settingsUpdateTime} show="exact" />],
              ['Created', <Time at={connector.createTime} show="exact" />],
              ['Signature', schemeName(connector.settings['signature:scheme'] ?? 'none')],
            ]}
          />
        </Card>
      </div>
    </div>
  );
}

/** What the person who sets the sender up has to know. */
function Address({ connector: { connectorId, settings } }: { readonly connector: Connector }) {
  const url = publicUrl(connectorId);
  const scheme = schemeOf(settings['signature:scheme'] ?? '');
  const trial =
    scheme === null
      ? `curl -i ${url} -H 'Content-Type: application/json' -d '{"number": 1742}'`
      : `skua webhook send ${url} order.json --scheme ${scheme.name} --secret-file secret`;
  return (
    <Card title="Address for the sender">
      <div class="stack tight">
        <Command text={url} label="Copy the address" />
        <p class="muted small">
          Senders post JSON to it, with the content type <code>application/json</code>
          {scheme === null ? (
            ', and without a signature'
          ) : (
            <>
              , signed in <code>{scheme.header ?? settings['signature:header'] ?? 'the header of the settings'}</code>
            </>
          )}
          . Behind a proxy, use the proxy's host.
        </p>
        <details>
          <summary class="small">Send a test call</summary>
          <Command text={trial} />
        </details>
      </div>
    </Card>
  );
}
