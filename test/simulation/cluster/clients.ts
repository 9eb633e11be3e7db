import type { ObjectInstance } from '../../../core/shared-log/api.ts';
import { ANY, type EventStore, type NewEvent, NO_STREAM, STREAM_EXISTS } from '../../../core/streams/api.ts';
import { newDecision } from './conditions.ts';
import type { SimProcess } from '../shared-log/sim-process.ts';
import { forward } from './forwarding.ts';
import { type Answer, answered, comesAgain, put, type Request } from './requests.ts';
import type { SimMember } from './sim-member.ts';
import { checkAll, checkStream } from './reads.ts';
import { KEPT, LIMITED } from './truth.ts';
import type { World } from './world.ts';

/** Somebody who decides writes: a function, or a member that decides by itself. */
export interface Writer {
  readonly name: string;
  readonly process: SimProcess;
  readonly store: EventStore;
}

/** A place of a function: an instance over the bucket alone. */
export interface FunctionSlot {
  process: SimProcess;
  instance: ObjectInstance | null;
}

/**
 * Whoever uses the store: writes with and without expected versions, repeated while their outcome is not known, and
 * reads.
 */
export class Clients {
  readonly #world: World;
  readonly #members: readonly SimMember[];
  readonly #functions: readonly FunctionSlot[];
  #tokens = 0;

  constructor(world: World, members: readonly SimMember[], functions: readonly FunctionSlot[]) {
    this.#world = world;
    this.#members = members;
    this.#functions = functions;
  }

  async run(): Promise<void> {
    const { random } = this.#world;
    while (!this.#world.isPeace) {
      await this.#world.wait(random.chance(0.9) ? random.int(10, 800) : random.int(1_000, 10_000));
      const work = random.chance(0.3) ? this.#read() : this.#write();
      await Promise.race([work, this.#world.wait(25_000)]);
    }
  }

  async #read(): Promise<void> {
    const member = this.#world.random.pick(this.#members);
    if (member.opened === null) return;
    const what = this.#world.random.pick([...KEPT, ...KEPT, ...LIMITED, null]);
    await (what === null ? checkAll(this.#world, member) : checkStream(this.#world, member, what));
  }

  #newRequest(): Request {
    const { random, judge } = this.#world;
    const { clients } = this.#world;
    const mark = clients === 'redacting' && random.chance(0.2) ? this.#newMark() : null;
    if (mark !== null) return mark;
    if (clients === 'deciding' && random.chance(0.6)) return newDecision(this.#world);
    const stream = random.chance(0.65) ? random.pick(KEPT) : random.pick(LIMITED);
    const token = random.chance(0.15) ? `n${++this.#tokens}` : null;
    if (!KEPT.includes(stream)) {
      if (random.chance(0.1))
        return { stream, what: random.chance(0.85) ? 'soft' : 'hard', expected: ANY, events: [], token: null };
      if (random.chance(0.25)) {
        const rules = random.pick([{ $maxCount: random.int(1, 4) }, { $tb: random.int(0, 8) }, {}]);
        return {
          stream: `$$${stream}`,
          what: 'append',
          expected: ANY,
          events: [{ ...this.newEvent(''), type: '$metadata', isJson: true, data: Buffer.from(JSON.stringify(rules)) }],
          token: null,
        };
      }
    }
    const events = Array.from({ length: token !== null || random.chance(0.8) ? 1 : random.int(2, 4) }, () =>
      this.newEvent(''),
    );
    const known = !KEPT.includes(stream) ? ANY : judge.lastAt(stream, judge.truth.last - random.pick([0, 0, 0, 3]));
    return {
      stream,
      what: 'append',
      expected:
        token !== null || (!judge.truth.remembersAll && random.chance(0.5))
          ? ANY
          : random.pick([
              ANY,
              ANY,
              STREAM_EXISTS,
              NO_STREAM,
              known,
              known,
              known === ANY ? ANY : known + random.int(0, 1),
            ]),
      events,
      token,
    };
  }

  /** Names one of the events that the log has. */
  #newMark(): Request | null {
    const { random, judge } = this.#world;
    const { truth } = judge;
    const records = truth.streams.get(random.pick([...KEPT, ...LIMITED])) ?? [];
    if (records.length === 0) return null;
    const { id, position, prepare } = random.pick(records);
    const { stream, number, isTombstone } = prepare!;
    if (isTombstone) return null;
    const data = Buffer.from(JSON.stringify({ stream, number, id, position, by: 'ann', reason: 'a card' }));
    const event = { ...this.newEvent(''), type: '$redaction', isJson: true, data };
    return { stream: '$redactions', what: 'append', expected: ANY, events: [event], token: null };
  }

  newEvent(data: string, bytes = this.#bytes()): NewEvent {
    return {
      id: this.#world.newId(),
      type: 'T',
      isJson: false,
      data: Buffer.from(data.padEnd(bytes, '.')),
      metadata: new Uint8Array(0),
    };
  }

  #bytes(): number {
    const { random } = this.#world;
    return random.chance(0.15) ? random.int(2_000, 20_000) : 10;
  }

  /**
   * One write, which its client sends again, somewhere, while it does not know what became of it. What has no ids is
   * sent once.
   */
  async #write(): Promise<void> {
    const { random, judge } = this.#world;
    const request = this.#newRequest();
    if (request.expected >= NO_STREAM && KEPT.includes(request.stream))
      judge.expects(request.events[0]!.id, request.expected);
    if (request.condition !== undefined) judge.conditions.asks(request.events[0]!.id, request.condition);
    let wasUnknown = false;
    for (let tries = 0; tries < 4; tries++) {
      const answer = await this.#ask(request, wasUnknown);
      if (answer === 'done' || request.token !== null || request.what !== 'append') return;
      wasUnknown ||= answer === 'unknown';
      await this.#world.wait(random.int(1, 8_000));
    }
  }

  /** Some clients wait no longer than this for an answer, and then send the request again, elsewhere. */
  async #ask(request: Request, wasUnknown: boolean): Promise<Answer> {
    const { random, judge } = this.#world;
    let isGone = false;
    const asked = this.#send(request, wasUnknown, () => isGone);
    if (request.token !== null || request.what !== 'append' || random.chance(0.5)) return asked;
    const gaveUp = this.#world.wait(random.int(2_000, 12_000)).then(() => null);
    const answer = await Promise.race([asked, gaveUp]);
    if (answer !== null) return answer;
    // Its connection may look as if it were there.
    isGone = random.chance(0.5);
    judge.count('hungUp');
    comesAgain(request);
    return 'unknown';
  }

  #send(request: Request, wasUnknown: boolean, isGone: () => boolean): Promise<Answer> {
    const { random } = this.#world;
    if (this.#functions.length > 0 && random.chance(0.15)) {
      const { process, instance } = random.pick(this.#functions);
      if (instance !== null && !process.isDead)
        return decide(this.#world, { name: process.name, process, store: instance.store }, request, wasUnknown);
    }
    const member = random.pick(this.#members);
    const { opened } = member;
    if (opened === null) return Promise.resolve('failed');
    if (opened.log !== null && random.chance(0.6))
      return forward(this.#world, this.#members, member, request, wasUnknown, isGone);
    return decide(
      this.#world,
      { name: member.run.process.name, process: member.run.process, store: opened.store },
      request,
      wasUnknown,
      member,
    );
  }
}

/** Asks somebody who decides it himself. `member`: whose clients must see at once what was acknowledged. */
async function decide(
  world: World,
  writer: Writer,
  request: Request,
  wasUnknown: boolean,
  member?: SimMember,
): Promise<Answer> {
  const before = world.judge.truth.last;
  const startedMs = world.timeline.now;
  await new Promise<void>((resolve) => {
    writer.process.deliver(resolve);
  });
  const held = member?.run.process === writer.process ? member.run.patience.begin(() => false) : null;
  const outcome = await put(
    world,
    writer.store,
    request,
    null,
    held === null ? null : startedMs,
    held === null ? null : () => held.refusal(),
  );
  return answered(world, writer.name, request, outcome, {
    before,
    wasUnknown,
    startedMs,
    ...(member !== undefined && { member }),
  });
}
