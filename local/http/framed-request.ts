import type { IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { ByteShare, ShareOwner } from '../../core/byte-budget.ts';
import { frameHeaders } from './frames.ts';
import { LocalHeaders, REQUEST_TARGET, tooLarge, urlOf } from './request.ts';
import type { ServedRequest, Serving } from './request.ts';

/** A token (RFC 9110 section 9.1); the longest of those in use has eleven letters. */
const METHOD = /^[A-Z-]{1,32}$/;

/** A request that another member has sent among others over one connection. It is there as a whole. */
export class FramedRequest implements ServedRequest, ShareOwner {
  readonly method: string;
  readonly headers: LocalHeaders;
  readonly socket: Socket;
  readonly isFramed = true;
  readonly #target: string;
  readonly #head: readonly string[];
  readonly #given: IncomingHttpHeaders;
  readonly #body: Buffer;
  readonly #serving: Serving;
  #url: string | null = null;
  #controller: AbortController | null = null;
  #replyShare: ByteShare | null = null;
  #bodyShare: ByteShare | null = null;
  #isOver = false;
  #caller: string | null = null;

  /** Errors: one for a head that is none. */
  constructor(socket: Socket, head: readonly string[], body: Buffer, serving: Serving) {
    this.#given = frameHeaders(head);
    this.method = head[0]!;
    this.#target = head[1]!;
    if (!METHOD.test(this.method) || !REQUEST_TARGET.test(this.#target)) throw new Error('the head of a frame names no method or no target');
    this.headers = new LocalHeaders(this.#given);
    this.socket = socket;
    this.#head = head;
    this.#body = body;
    this.#serving = serving;
  }

  get url(): string { return (this.#url ??= urlOf({ url: this.#target, headers: this.#given, socket: this.socket })); }

  get rawHeaders(): readonly string[] { return this.#head.slice(2); }

  get plainHost(): string | null { return 'encrypted' in this.socket ? null : this.#given.host || null; }

  /** What the answer holds in memory, until that is on its way. */
  get replyShare(): ByteShare { return (this.#replyShare ??= this.#serving.flow.replies.share(this, this.#caller)); }

  calledBy(caller: string): void { this.#caller = caller; }

  get isGone(): boolean { return this.#isOver || this.socket.destroyed; }

  onFirstUse(): void {}

  /** Aborts when the connection ends before the answer, or the server stops. Made when first asked for. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      this.#serving.ending.add(this.#controller);
      if (this.isGone) this.end();
    }
    return this.#controller.signal;
  }

  /** The body, which counts in the budget from now on. Errors: `body_too_large`, `too_busy`. */
  async readBytes(bytesMax: number): Promise<Uint8Array> {
    const body = this.#body;
    if (body.length > bytesMax) throw tooLarge(bytesMax);
    const share = this.#bodyShare ??= this.#serving.flow.uploads.share(this, this.#caller);
    if (!share.add(body.length)) await share.room();
    return body;
  }

  /** It is answered, or its connection has ended. */
  end(isAnswered = false): void {
    this.#isOver = true;
    this.#bodyShare?.close();
    this.#replyShare?.close();
    if (this.#controller === null) return;
    this.#serving.ending.delete(this.#controller);
    if (!isAnswered) this.#controller.abort();
  }
}
