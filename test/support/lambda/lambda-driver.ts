import { FunctionProcess } from '../../../local/functions/function-pool.ts';
import type { Outcome } from '../../../local/functions/runtime-interface.ts';
import { basic, httpEvent } from './events.ts';

export interface DriverOptions {
  /** Folder of the bundles. */
  readonly bundles: string;
  /** Environment of the functions. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What runs a function, given the folder of its bundle. */
  readonly command: (folder: string) => readonly [string, ...string[]];
}

export interface HttpReply {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface HttpCall {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly query?: string;
  /** Null: no credentials. */
  readonly user?: readonly [string, string] | null;
}

/** The variables that a function's process has on the platform, beside its own. */
const PLATFORM = [
  'PATH',
  'HOME',
  'TMPDIR',
  'LANG',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_REGION',
  'AWS_ENDPOINT_URL_S3',
];
/** However busy the machine is; what the platform's limit does has tests of its own. */
const CALL_MS = 600_000;

/** Built functions in processes of their own, driven through the runtime interface. */
export class LambdaDriver {
  readonly #options: DriverOptions;
  readonly #processes = new Map<string, FunctionProcess>();
  output = '';

  constructor(options: DriverOptions) {
    this.#options = options;
  }

  async invoke(name: string, event: unknown, timeoutMs = CALL_MS): Promise<Outcome> {
    let running = this.#processes.get(name);
    if (running === undefined) {
      const folder = `${this.#options.bundles}/${name}`;
      const inherited = Object.fromEntries(PLATFORM.map((variable) => [variable, process.env[variable]]));
      running = new FunctionProcess({
        name,
        folder,
        env: { ...inherited, ...this.#options.env },
        command: this.#options.command(folder),
        onOutput: (text) => {
          this.output += text;
        },
      });
      this.#processes.set(name, running);
    }
    return running.invoke(event, timeoutMs);
  }

  async value(name: string, event: unknown): Promise<unknown> {
    const outcome = await this.invoke(name, event);
    if (outcome.kind !== 'result') throw new Error(`The function ${name}: ${JSON.stringify(outcome)}\n${this.output}`);
    return outcome.value;
  }

  /** A request as the platform would send it: text as text, bytes as Base64. */
  async http(
    name: string,
    method: string,
    path: string,
    { headers = {}, body, query = '', user = ['admin', 'first'] }: HttpCall = {},
  ): Promise<HttpReply> {
    const event = httpEvent(method, path, {
      query,
      headers: { ...(user !== null && { authorization: basic(...user) }), ...headers },
      ...(body !== undefined && {
        body: typeof body === 'string' ? body : Buffer.from(body).toString('base64'),
        isBase64Encoded: typeof body !== 'string',
      }),
    });
    const reply = (await this.value(name, event)) as HttpReply & { readonly isBase64Encoded?: boolean };
    return {
      ...reply,
      body: reply.isBase64Encoded === true ? Buffer.from(reply.body, 'base64').toString('utf8') : reply.body,
    };
  }

  /** Ends all processes, as the platform does with those that nobody calls: the next calls start cold ones. */
  async restart(): Promise<void> {
    const running = [...this.#processes.values()];
    this.#processes.clear();
    await Promise.all(running.map((each) => each.close()));
  }
}
