import * as http from 'node:http';
import type { AddressInfo } from 'node:net';

/** A secret store that speaks as AWS Secrets Manager does, as far as functions ask it. */
export class SecretStore {
  /** Texts of secrets by their names; an error is what reading them is answered with. */
  readonly secrets: Map<string, string | { readonly status: number; readonly name: string }>;
  /** Names that were asked for. */
  readonly asked: string[] = [];
  readonly #server: http.Server;

  constructor(secrets: Readonly<Record<string, string | { readonly status: number; readonly name: string }>>) {
    this.secrets = new Map(Object.entries(secrets));
    this.#server = http.createServer((request, reply) => {
      let body = '';
      request.on('data', (part: Buffer) => {
        body += part.toString();
      });
      request.on('end', () => {
        const { SecretId: id } = JSON.parse(body) as { readonly SecretId: string };
        this.asked.push(id);
        const signed =
          request.headers.authorization?.startsWith('AWS4-HMAC-SHA256 ') === true &&
          request.headers['x-amz-target'] === 'secretsmanager.GetSecretValue';
        const found = signed
          ? (this.secrets.get(id) ?? { status: 400, name: 'ResourceNotFoundException' })
          : { status: 400, name: 'AccessDeniedException' };
        const isText = typeof found === 'string';
        reply.writeHead(isText ? 200 : found.status, { 'content-type': 'application/x-amz-json-1.1' });
        reply.end(
          JSON.stringify(
            isText
              ? { ARN: `arn:aws:secretsmanager:local:000000000000:secret:${id}-abcdef`, Name: id, SecretString: found }
              : { __type: found.name, message: 'Refused.' },
          ),
        );
      });
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  listen(): Promise<this> {
    return new Promise((resolve) => {
      this.#server.listen(0, '127.0.0.1', () => resolve(this));
    });
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
    });
  }
}
