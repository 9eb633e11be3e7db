import { readFileSync } from 'node:fs';
import { fixturePath } from '../../support/fixtures.ts';
import type { Json } from '../codec.ts';

/** A call as it stands in `grpc-exchanges.json`. */
export interface Exchange {
  readonly name: string;
  readonly note?: string;
  readonly service: string;
  readonly method: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly requests: readonly Json[];
  /** Of many only some: `responses_total` says how many there were. */
  readonly responses: readonly Json[];
  readonly responses_total?: number;
  /** `>` for each message sent, `<` for each received; absent where all was sent before anything came. */
  readonly order?: string;
  readonly code: number;
  readonly details: string;
  readonly trailers: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cancelled_by_client?: boolean;
  readonly client_deadline_ms?: number;
}

/** Where the recorded directory ended, before the recorded node wrote anything. */
export const DIRECTORY_END = 5_187_141;

export function loadGrpcExchanges(): Exchange[] {
  return JSON.parse(readFileSync(fixturePath('grpc-exchanges.json'), 'utf8')) as Exchange[];
}

export function pathOf({ service, method }: Exchange): string {
  return `/${service}/${method}`;
}

/** When the call was answered. */
export function timeOf({ headers, trailers }: Exchange): number | null {
  const date = headers?.['date'] ?? trailers['date'];
  return date === undefined ? null : Date.parse(date);
}

/** A recorded request as the codec takes it: long fillings as bytes, and null as nothing. */
export function requestOf(json: unknown): any {
  if (Array.isArray(json)) return json.map(requestOf);
  if (typeof json !== 'object' || json === null) return json;
  const { $filled: filled } = json as { readonly $filled?: { readonly byte: number; readonly length: number } };
  if (filled !== undefined) return Buffer.alloc(filled.length, filled.byte);
  return Object.fromEntries(
    Object.entries(json)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [name, requestOf(value)]),
  );
}

/** Trailers without what belongs to HTTP. */
export function trailersOf({ trailers }: Exchange): Record<string, string> {
  return Object.fromEntries(
    Object.entries(trailers).filter(([name]) => !['content-type', 'date', 'server', 'content-length'].includes(name)),
  );
}

/** Text of base64. */
export function textOf(base64: string | undefined): string {
  return Buffer.from(base64 ?? '', 'base64').toString('utf8');
}
