import type { Skua } from './skua.ts';

/** The node runs it for each call whose signature is right. Where it returns null, nothing is written. */
const ROUTE = `
function route({ body }) {
  return /^[a-z0-9-]{1,36}$/.test(body.patient) ? { stream: 'lab-' + body.patient, schema: 'ReportReceived' } : null;
}`;
const PATH = '/connectors/lab';

/** Has the node take the lab's calls at /webhook/lab, also while this application is not running. */
export async function takeReports({ call }: Skua, secret: string): Promise<void> {
  const routingScript = Buffer.from(ROUTE).toString('base64');
  const settings = {
    instanceTypeName: 'webhook-source',
    routingScript,
    signature: { scheme: 'StandardWebhooks', secret },
    streams: ['lab-*'],
    waitForWrite: true,
  };
  const found = await call<{ state: string; settings: Record<string, string> }>('GET', PATH);
  if (found === null) await call('POST', PATH, { settings });
  else if (found.settings['routingScript'] !== routingScript) {
    await call('PUT', PATH, { settings });
    await call('POST', `${PATH}/stop`);
  } else if (found.state === 'CONNECTOR_STATE_RUNNING') return;
  await call('POST', `${PATH}/start`);
}
