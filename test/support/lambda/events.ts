import type { HttpEvent } from '../../../infra/aws/functions/request-of.ts';

interface Parts {
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cookies?: string[];
  readonly body?: string;
  readonly isBase64Encoded?: boolean;
  readonly sourceIp?: string;
}

/** An event of a function's own address, in the shape that the platform documents (payload format 2.0). */
export function httpEvent(
  method: string,
  rawPath: string,
  { query = '', headers = {}, cookies, body, isBase64Encoded = false, sourceIp = '198.51.100.1' }: Parts = {},
): HttpEvent & Record<string, unknown> {
  const event = {
    version: '2.0',
    routeKey: '$default',
    rawPath,
    rawQueryString: query,
    ...(cookies !== undefined && { cookies }),
    headers: {
      host: 'store.example.com',
      'x-forwarded-proto': 'https',
      'x-forwarded-port': '443',
      'x-forwarded-for': sourceIp,
      'user-agent': 'tests',
      ...headers,
    },
    requestContext: {
      accountId: 'anonymous',
      apiId: 'store',
      domainName: 'store.example.com',
      domainPrefix: 'store',
      requestId: '5e9f0d65-b6a2-4a1f-8c55-2a1d3d7be0aa',
      routeKey: '$default',
      stage: '$default',
      http: { method, path: rawPath, protocol: 'HTTP/1.1', sourceIp, userAgent: 'tests' },
      time: '12/Mar/2026:19:03:58 +0000',
      timeEpoch: 1_773_342_238_000,
    },
    ...(body !== undefined && { body }),
    isBase64Encoded,
  };
  return event;
}

/** The event of a schedule. */
export function scheduledEvent(): Record<string, unknown> {
  return {
    version: '0',
    id: '53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa',
    'detail-type': 'Scheduled Event',
    source: 'aws.events',
    account: '123456789012',
    time: '2026-03-12T19:03:58Z',
    region: 'eu-north-1',
    resources: ['arn:aws:events:eu-north-1:123456789012:rule/tick'],
    detail: {},
  };
}

/** Credentials as a client sends them. */
export function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
}
