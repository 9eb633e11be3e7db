import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT } from '../../infra/runtime/io.ts';
import { bundled } from '../../infra/runtime/version.ts';

const PACKAGE = '@octokit/webhooks-examples';

/** One webhook as its sender makes it, and what is expected to become of it. */
export interface DemoDelivery {
  /** `X-GitHub-Delivery`. */
  readonly deliveryId: string;
  /** `X-GitHub-Event`. */
  readonly name: string;
  /** The body, to the byte. */
  readonly body: string;
  readonly eventType: string;
}

export interface DemoStream {
  readonly stream: string;
  readonly deliveries: readonly DemoDelivery[];
}

interface Example {
  readonly name: string;
  readonly examples: readonly Record<string, unknown>[];
}

/** The recorded webhook payloads of GitHub, one stream a repository, in the order of the package. */
export async function loadStreams(): Promise<DemoStream[]> {
  const streams = new Map<string, DemoDelivery[]>();
  for (const { name, examples } of await loadExamples()) {
    for (const [number, payload] of examples.entries()) {
      const stream = streamOf(payload);
      const action = typeof payload['action'] === 'string' ? `.${payload['action']}` : '';
      const body = JSON.stringify(payload);
      const delivery = { deliveryId: idOf(`${name}/${number}`, body), name, body, eventType: name + action };
      const deliveries = streams.get(stream);
      if (deliveries === undefined) streams.set(stream, [delivery]);
      else deliveries.push(delivery);
    }
  }
  return [...streams].map(([stream, deliveries]) => ({ stream, deliveries }));
}

async function loadExamples(): Promise<Example[]> {
  try {
    const packed = bundled('./demo-webhooks.json.gz');
    const bytes =
      packed === null
        ? await readFile(fileURLToPath(import.meta.resolve(`${PACKAGE}/api.github.com/index.json`)))
        : await promisify(gunzip)(await readFile(packed));
    return JSON.parse(bytes.toString()) as Example[];
  } catch (error) {
    throw new CommandError(
      'payloads_missing',
      `The payloads can't be read (${(error as Error).message}). Reinstall them: npm ci in a checkout, otherwise the package.`,
      EXIT.failed,
    );
  }
}

/** Where ROUTING_SCRIPT sends it: `github-<owner>-<repository>`, else `github-<organisation>`, else `github-other`. */
function streamOf(payload: Record<string, unknown>): string {
  const repository = textIn(payload['repository'], 'full_name');
  const organisation = textIn(payload['organization'], 'login');
  return `github-${(repository ?? organisation ?? 'other').replaceAll('/', '-')}`;
}

function textIn(value: unknown, key: string): string | null {
  const found = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  return typeof found === 'string' ? found : null;
}

/**
 * The same payload gets the same id in every run, so that a second run is recognised as a repeat. A UUID of version 8.
 */
function idOf(place: string, body: string): string {
  const hash = createHash('sha256').update(`skua demo ${place} `).update(body).digest();
  hash[6] = (hash[6]! & 0x0f) | 0x80;
  hash[8] = (hash[8]! & 0x3f) | 0x80;
  const hex = hash.toString('hex', 0, 16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
