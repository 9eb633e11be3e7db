import { randomBytes } from 'node:crypto';
import type { SignatureSettings, ConnectorState } from '../../core/webhook/api.ts';
import { signCall } from '../../core/webhook/signatures/signatures.ts';
import { nodeKeys } from '../../infra/node-keys.ts';
import type { ConnectorsDocument } from '../../handlers/documents/connectors.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import type { NodeClient } from '../cli/node-client.ts';
import { expectStatus } from '../cli/node-client.ts';
import type { DemoDelivery } from './demo-payloads.ts';

export const CONNECTOR_ID = 'demo-github';
/** Where the connector's script leaves the id of the delivery in the event's metadata. */
export const DELIVERY_HEADER = 'x-github-delivery';
/** How long the connector remembers deliveries, so that a run within that time writes nothing again. */
const REMEMBERED = '720:00:00';
/** Waits before a call that found the connector busy is sent again. */
const RETRY_MS: readonly number[] = [50, 100, 200, 400, 800, 1_600, 3_200];

const GITHUB: SignatureSettings = {
  scheme: 'GitHub',
  timestampToleranceMs: 0,
  header: null,
  prefix: null,
  encoding: null,
  hash: null,
};

/** A stream for each repository, else for each organisation; the type is the event's name and action. */
const ROUTING_SCRIPT = `function route({ body, headers }) {
  const source = body.repository ? body.repository.full_name : body.organization ? body.organization.login : 'other';
  const name = headers['x-github-event'];
  return { stream: 'github-' + source.replaceAll('/', '-'), schema: body.action ? name + '.' + body.action : name };
}
`;

/** The connector of the demo, and the sender of the webhooks that it takes. */
export class DemoConnector {
  /** Null where the node keeps no secrets: then nothing is signed. */
  secret: string | null = null;
  readonly #node: NodeClient;
  /** Without a login: a sender of webhooks has none. */
  readonly #sender: NodeClient;
  readonly #sleep: (ms: number) => Promise<void>;

  constructor(node: NodeClient, sleep: (ms: number) => Promise<void>) {
    this.#node = node;
    this.#sender = node.withoutLogin();
    this.#sleep = sleep;
  }

  /** Creates the connector, or gives that of an earlier run a new secret, and starts it. */
  async start(): Promise<void> {
    const state = await this.#state();
    if (state !== null && state !== 'CONNECTOR_STATE_STOPPED') await this.stop();
    const secret = randomBytes(32).toString('hex');
    if (await this.#configure(state !== null, secret)) this.secret = secret;
    else await this.#configure(state !== null, null);
    await this.#command('POST', '/start', 'starting the connector');
  }

  /** It stays there, so that it knows the deliveries when they come again, but takes no calls. */
  stop(): Promise<void> {
    return this.#command('POST', '/stop', 'stopping the connector');
  }

  /** Posts a delivery, signed as GitHub signs it, and gives the status of the answer. */
  async post(delivery: DemoDelivery, secret: string | null = this.secret): Promise<number> {
    const { deliveryId, name, body } = delivery;
    const signed =
      secret === null
        ? [['X-GitHub-Delivery', deliveryId] as const]
        : signCall(nodeKeys, GITHUB, secret, { body: new TextEncoder().encode(body), id: deliveryId, timestampS: 0 });
    const headers = { 'content-type': 'application/json', 'x-github-event': name, ...Object.fromEntries(signed) };
    for (let attempt = 0; ; attempt++) {
      const response = await this.#sender.call('POST', `/webhook/${CONNECTOR_ID}`, { headers, body });
      await response.body?.cancel();
      const waitMs = RETRY_MS[attempt];
      if (response.status !== 503 || waitMs === undefined) return response.status;
      await this.#sleep(waitMs);
    }
  }

  async #state(): Promise<ConnectorState | null> {
    const response = await this.#node.call('GET', `/connectors?connectorId=${CONNECTOR_ID}`);
    if (response.status === 404)
      throw new CommandError(
        'connectors_off',
        'The node runs no connectors. Start it without --connectors-enabled=false.',
        EXIT.refused,
      );
    const { items } = JSON.parse(await expectStatus(response, [200], 'listing connectors')) as ConnectorsDocument;
    return items[0]?.state ?? null;
  }

  /** False when the node takes no secrets. */
  async #configure(isThere: boolean, secret: string | null): Promise<boolean> {
    const settings = {
      instanceTypeName: 'webhook-source',
      routingScript: Buffer.from(ROUTING_SCRIPT).toString('base64'),
      waitForWrite: true,
      allowedHeaders: ['Content-Type', 'X-GitHub-Event', DELIVERY_HEADER],
      streams: ['github-*'],
      deduplication: { maxAge: REMEMBERED },
      ...(secret !== null && { signature: { scheme: GITHUB.scheme, secret } }),
    };
    const [method, rest, body] = isThere
      ? (['PUT', '/settings', settings] as const)
      : (['POST', '', { name: 'Webhooks of the demo', settings }] as const);
    const response = await this.#call(method, rest, JSON.stringify(body));
    const text = await response.clone().text();
    if (secret !== null && response.status === 400 && text.includes('"SECRET_REFUSED"')) return false;
    await expectStatus(response, [200], 'configuring the connector');
    return true;
  }

  async #command(method: string, rest: string, what: string): Promise<void> {
    await expectStatus(await this.#call(method, rest), [200], what);
  }

  #call(method: string, rest: string, body?: string): Promise<Response> {
    return this.#node.call(method, `/connectors/${CONNECTOR_ID}${rest}`, {
      headers: { 'content-type': 'application/json' },
      ...(body !== undefined && { body }),
    });
  }
}
