import type { Socket } from 'node:net';
import type { ByteShare } from '../../core/base/byte-budget.ts';
import { hostOf } from '../http/http-request.ts';
import type { ServedRequest } from '../http/http-request.ts';

/**
 * The part of the web platform's `Headers` that handlers use, over the fields of HTTP/2 as they arrived, names and
 * values in turn.
 */
class FieldHeaders {
  readonly #fields: readonly string[];

  constructor(fields: readonly string[]) {
    this.#fields = fields;
  }

  /** What has come more than once is joined by commas. */
  get(name: string): string | null {
    if (name === 'host') return this.#find(':authority') ?? this.#find('host');
    return this.#find(name.toLowerCase());
  }

  #find(name: string): string | null {
    const fields = this.#fields;
    let value: string | null = null;
    for (let i = 0; i < fields.length; i += 2) {
      if (fields[i] === name) value = value === null ? fields[i + 1]! : `${value}, ${fields[i + 1]!}`;
    }
    return value;
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  *[Symbol.iterator](): Iterator<[string, string]> {
    const names = new Set<string>();
    for (let i = 0; i < this.#fields.length; i += 2) if (!this.#fields[i]!.startsWith(':')) names.add(this.#fields[i]!);
    for (const name of names) yield [name, this.get(name)!];
  }
}

/** What a request asks of the call that it stands for. */
interface Asked {
  readonly path: string;
  readonly signal: AbortSignal;
  readonly isGone: boolean;
  readonly replyShare: ByteShare;
  calledBy(caller: string): void;
}

/** A call of gRPC as a request, of which authentication, access, audit and tracing take headers and connection. */
export class CallRequest implements ServedRequest {
  readonly method = 'POST';
  readonly plainHost = null;
  readonly socket: Socket;
  readonly rawHeaders: readonly string[];
  readonly headers: FieldHeaders;
  readonly #call: Asked;

  constructor(socket: Socket, rawHeaders: readonly string[], call: Asked) {
    this.socket = socket;
    this.rawHeaders = rawHeaders;
    this.headers = new FieldHeaders(rawHeaders);
    this.#call = call;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }
  get isGone(): boolean {
    return this.#call.isGone;
  }
  get replyShare(): ByteShare {
    return this.#call.replyShare;
  }

  calledBy(caller: string): void {
    this.#call.calledBy(caller);
  }

  /** With schemes of their own, clients may send paths of any form. */
  get url(): string {
    const { path } = this.#call;
    return `${'encrypted' in this.socket ? 'https' : 'http'}://${hostOf(this.headers.get('host') ?? undefined, this.socket)}${path.startsWith('/') ? '' : '/'}${path}`;
  }

  /** What it holds are messages, which are read one by one. */
  readBytes(): Promise<Uint8Array> {
    return Promise.reject(new Error('A call of gRPC has no body.'));
  }
}
