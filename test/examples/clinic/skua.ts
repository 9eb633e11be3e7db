import { KurrentDBClient } from '@kurrent/kurrentdb-client';

/** A node. Events go over gRPC by the official client; webhooks, scavenges and proofs are managed over HTTP. */
export interface Skua {
  readonly client: KurrentDBClient;
  /** The JSON that the node answers; null for 404. */
  call<Answer>(method: string, path: string, body?: unknown): Promise<Answer | null>;
}

export function connect(connectionString: string): Skua {
  const { host, username, password, searchParams } = new URL(connectionString);
  const base = `${searchParams.get('tls') === 'false' ? 'http' : 'https'}://${host}`;
  const login = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  const headers = { 'content-type': 'application/json', ...(username && { authorization: `Basic ${login}` }) };
  return {
    client: KurrentDBClient.connectionString(connectionString),
    async call<Answer>(method: string, path: string, body?: unknown) {
      const reply = await fetch(`${base}${path}`, { method, headers, body: JSON.stringify(body) ?? null });
      const text = await reply.text();
      if (reply.status === 404) return null;
      if (!reply.ok) throw new Error(`${method} ${path} was answered ${reply.status}: ${text}`);
      return JSON.parse(text || '{}') as Answer;
    },
  };
}
