import { createHmac, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { NODE_FLAGS, startServer } from './child.ts';
import type { Server } from './child.ts';
import type { WebhookLoad } from './processes/http-load.ts';

/** What the figures of webhooks share. */

export const SECRET: string = randomBytes(32).toString('hex');
/** Of a call's body. */
const BODY_BYTES = 1_024;
const ID_HEADER = 'X-GitHub-Delivery';

/** Names the stream by what the body says, as real scripts do. */
export const ROUTING_SCRIPT = `function route({ body, headers }) {
  return { stream: 'orders-' + body.customer, schema: headers['x-github-event'] };
}`;

/** JSON of exactly BODY_BYTES ASCII characters. */
const BODY: string = (() => {
  const head =
    '{"action":"opened","customer":"c-55120","order":{"number":1742,"total":129.5,"lines":[{"sku":"A-1","n":2},{"sku":"B-7","n":1}]},"note":"';
  return `${head}${'n'.repeat(BODY_BYTES - head.length - 2)}"}`;
})();

/** Calls to a connector, signed as GitHub does. */
export function signedCalls(connectorId: string, expectedStatus: number): WebhookLoad {
  const signature = createHmac('sha256', SECRET).update(BODY).digest('hex');
  return {
    path: `/webhook/${connectorId}`,
    body: BODY,
    headers: { 'X-Hub-Signature-256': `sha256=${signature}`, 'X-GitHub-Event': 'order' },
    idHeader: ID_HEADER,
    expectedStatus,
  };
}

/** A node that keeps secrets. */
export function startWebhookNode(folder: string): Promise<Server> {
  return startServer([
    ...NODE_FLAGS,
    'local/main.ts',
    'start',
    '--db',
    join(folder),
    '--node-port',
    '0',
    '--insecure',
    '--connectors-data-protection-token',
    'bench',
  ]);
}

/** Creates and starts a connector that is as by default, but for script and signature. */
export async function startConnector(
  port: number,
  connectorId: string,
  script: string,
  more: object = {},
): Promise<void> {
  const settings = {
    instanceTypeName: 'webhook-source',
    routingScript: btoa(script),
    signature: { scheme: 'GitHub', secret: SECRET },
    ...more,
  };
  for (const [path, body] of [
    ['', { settings }],
    ['/start', {}],
  ] as const) {
    const reply = await fetch(`http://127.0.0.1:${port}/connectors/${connectorId}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (reply.status !== 200)
      throw new Error(`The connector was not created and started: ${reply.status} ${await reply.text()}`);
  }
}
