import { setTimeout as sleep } from 'node:timers/promises';
import { dirname } from 'node:path';
import type { Random } from '../../support/random.ts';
import { ask } from './http.ts';
import { BUCKET_ADDRESS, emptyDisk, fillDisk } from './isolation.ts';
import type { Network } from './isolation.ts';
import type { Member } from './member.ts';
import { count } from './writers.ts';
import type { Tally } from './writers.ts';

/** Milliseconds between the beginnings of two faults, and for which one lasts, at most. */
const BETWEEN_MS_MAX = 4_000;
const LASTS_MS_MAX = 12_000;
/** Longest that a member may need to be ready again when nothing is wrong any more, in milliseconds. */
const READY_MS_MAX = 300_000;
const READY_LOOK_MS = 100;

export interface FaultsOptions {
  readonly members: readonly Member[];
  readonly random: Random;
  /** Null where there are no namespaces: then no member is cut off, and no disk is full. */
  readonly network: Network | null;
  /** The bucket is behind the network. */
  readonly isBucketRemote: boolean;
  /** Whether members have directories of their own, which can be replaced. */
  readonly hasCopies: boolean;
  readonly nowMs: () => number;
  readonly say: (line: string) => void;
}

interface Fault {
  readonly name: string;
  begin(member: Member, index: number): Promise<void> | void;
  end(member: Member, index: number): Promise<void> | void;
}

/** What happens to members: at most all but one of them suffer at a time, so that somebody can always write. */
export class Faults {
  readonly done: Tally = {};
  readonly problems: string[] = [];
  readonly #options: FaultsOptions;
  readonly #suffering = new Set<number>();
  /** By member: until when its copy may have been unable to take anything; Infinity while its disk is full. */
  readonly #fullUntilMs = new Map<Member, number>();
  readonly #faults: readonly Fault[];
  readonly #coming: Fault[] = [];

  constructor(options: FaultsOptions) {
    this.#options = options;
    this.#faults = this.#possible();
  }

  wasFull(member: Member, sinceMs: number): boolean {
    return (this.#fullUntilMs.get(member) ?? -1) >= sinceMs;
  }

  /** One fault after another, some at the same time, until it is over; then all is well again. */
  async run(isOver: () => boolean): Promise<void> {
    const { members, random } = this.#options;
    const under: Promise<void>[] = [];
    while (!isOver()) {
      await sleep(random.int(BETWEEN_MS_MAX / 4, BETWEEN_MS_MAX));
      if (random.chance(0.15)) await this.#resign();
      if (this.#suffering.size >= Math.max(1, members.length - 1)) continue;
      const index = random.pick(members.map((_, i) => i).filter((i) => !this.#suffering.has(i)));
      under.push(this.#suffer(index, this.#next(), random.int(LASTS_MS_MAX / 24, LASTS_MS_MAX)));
    }
    await Promise.all(under);
  }

  /** In an order that changes, but each one as often as the others. */
  #next(): Fault {
    if (this.#coming.length === 0) this.#coming.push(...this.#options.random.shuffle([...this.#faults]));
    return this.#coming.pop()!;
  }

  async #suffer(index: number, fault: Fault, lastsMs: number): Promise<void> {
    const { members, say } = this.#options;
    const member = members[index]!;
    this.#suffering.add(index);
    count(this.done, fault.name);
    say(`${member.name}: ${fault.name} for ${lastsMs} ms`);
    try {
      await fault.begin(member, index);
      await sleep(lastsMs);
      await fault.end(member, index);
      const readyMs = await this.ready(member);
      say(`${member.name}: ready ${Math.round(readyMs)} ms after ${fault.name}`);
    } catch (error) {
      this.problems.push(`${member.name}, ${fault.name}: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.#suffering.delete(index);
    }
  }

  /** Waits until it says that it is ready; gives how long that took, in milliseconds. */
  async ready(member: Member): Promise<number> {
    const { nowMs } = this.#options;
    const sinceMs = nowMs();
    let last = '';
    while (nowMs() - sinceMs < READY_MS_MAX) {
      if (!member.isRunning) await member.start();
      const answer = await ask(`${member.url}/health/ready`, { timeoutMs: 2_000 }).catch(
        (error: Error) => error.message,
      );
      if (typeof answer !== 'string' && answer.status === 200) return nowMs() - sinceMs;
      last = typeof answer === 'string' ? answer : answer.text;
      await sleep(READY_LOOK_MS);
    }
    throw new Error(`it is not ready after ${READY_MS_MAX} ms: ${last}\n${member.log}`);
  }

  async #resign(): Promise<void> {
    const { members, random } = this.#options;
    const answer = await ask(`${random.pick(members).url}/admin/node/resign`, {
      method: 'POST',
      headers: { 'content-length': '0' },
    }).catch(() => null);
    count(this.done, `resign answered ${answer?.status ?? 'nothing'}`);
  }

  #possible(): Fault[] {
    const { members, network, isBucketRemote, hasCopies, random, nowMs } = this.#options;
    const start = (member: Member) => member.start();
    const faults: Fault[] = [
      { name: 'killed', begin: (member) => member.kill(), end: start },
      {
        name: 'killed and started at once',
        begin: async (member) => {
          await member.kill();
          await member.start();
        },
        end: () => {},
      },
      { name: 'stopped in good order', begin: (member) => member.stop(), end: start },
      {
        name: 'standing still',
        begin: (member) => member.signal('SIGSTOP'),
        end: (member) => member.signal('SIGCONT'),
      },
      {
        name: 'killed while standing still',
        begin: (member) => member.signal('SIGSTOP'),
        end: async (member) => {
          await member.kill();
          await member.start();
        },
      },
    ];
    if (hasCopies)
      faults.push({
        name: 'replaced',
        begin: async (member) => {
          await member.kill();
          await member.forget();
        },
        end: start,
      });
    if (network === null) return faults;
    const others = (index: number) => members.map((_, i) => i).filter((i) => i !== index);
    const parted = new Map<number, readonly number[]>();
    faults.push(
      {
        name: 'cut off from other members',
        begin: (_, index) => {
          const from = random.chance(0.5) ? others(index) : [random.pick(others(index))];
          parted.set(index, from);
          for (const other of from) network.part(index, other);
        },
        end: (_, index) => {
          for (const other of parted.get(index)!) network.join(index, other);
        },
      },
      { name: 'unplugged', begin: (_, index) => network.unplug(index), end: (_, index) => network.plug(index) },
    );
    if (isBucketRemote)
      faults.push({
        name: 'cut off from the bucket',
        begin: (_, index) => network.cut(index, BUCKET_ADDRESS),
        end: (_, index) => network.heal(index, BUCKET_ADDRESS),
      });
    if (hasCopies) {
      const disk = ({ options }: Member) => dirname(options.folder);
      faults.push({
        name: 'a full disk',
        begin: (member) => {
          this.#fullUntilMs.set(member, Number.POSITIVE_INFINITY);
          fillDisk(disk(member));
        },
        // It may take a while until the copy has taken in what it missed.
        end: (member) => {
          emptyDisk(disk(member));
          this.#fullUntilMs.set(member, nowMs() + LASTS_MS_MAX);
        },
      });
    }
    return faults;
  }
}
