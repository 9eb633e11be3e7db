import { SkuaError } from '../../base/errors.ts';
import type {
  DryRunReport,
  Explanation,
  LastScavenge,
  ResumedPoint,
  ScavengeOptions,
  ScavengeProgress,
  Scavenger,
  ScavengeStarted,
} from '../../scavenge/api.ts';
import type { EventStore, RedactionView } from '../../streams/api.ts';
import { Redactions } from '../../streams/redactions/redactions.ts';
import { type Call, layer, performWrite } from '../../streams/layer/layer.ts';
import type { MemberLog } from '../api.ts';
import { replicaClosed } from './member-log.ts';

/** What a copy that is closed, or must be, says to its users. */
const CLOSED: ReadonlySet<string> = new Set(['copy_behind', 'store_closed', 'io_error', 'file_not_found']);

/** The part of the opening in force; throws `not_ready` while there is none. */
type Current<T> = () => T;

/** The store of a member, whichever opening of its copy is in force. */
export function switchingStore(
  open: () => EventStore | null,
  current: Current<EventStore>,
  log: Pick<MemberLog, 'end' | 'refresh'>,
): EventStore {
  /**
   * Errors of a copy that is being closed and opened again say only that. None of them leaves open whether something
   * was written.
   */
  const told = (store: EventStore, error: unknown): unknown => {
    if (!(error instanceof SkuaError) || !CLOSED.has(error.code)) return error;
    return error.code === 'copy_behind' || open() !== store ? replicaClosed(error) : error;
  };
  const use = async <T>(call: Call<Promise<T>>): Promise<T> => {
    const store = current();
    try {
      return await call(store);
    } catch (error) {
      throw told(store, error);
    }
  };
  let redactions: RedactionView = new Redactions();
  const members = {
    /**
     * Also where the copy has ended its chunk since its last commit, which readers see; and while it is opened again it
     * does not go back.
     */
    get end() {
      return Math.max(open()?.end ?? 0, log.end);
    },
    /** Those of the last opening while there is none: what was read from it may still be on its way to readers. */
    get redactions() {
      return (redactions = open()?.redactions ?? redactions);
    },
    streamInfoNow: (stream: string) => open()?.streamInfoNow?.(stream) ?? null,
  };
  return layer(members, {
    // As `use`, without a closure for each write.
    write: async (write) => {
      const store = current();
      try {
        return await performWrite(store, write);
      } catch (error) {
        throw told(store, error);
      }
    },
    read: use,
    wait: use,
    async *follow(call, { after }) {
      // A reader that read on at another member may come with a position that this copy has not reached: what lies
      // before it must not come again.
      if (typeof after === 'object' && after.commit >= log.end) await use(() => log.refresh());
      const store = current();
      try {
        yield* call(store);
      } catch (error) {
        throw told(store, error);
      }
    },
  });
}

/** The scavenger of a member's copy. What it remembers of runs ends with the opening that they ran in. */
export class SwitchingScavenger implements Scavenger {
  readonly #open: () => Scavenger | null;
  readonly #scavenger: Current<Scavenger>;

  constructor(open: () => Scavenger | null, scavenger: Current<Scavenger>) {
    this.#open = open;
    this.#scavenger = scavenger;
  }

  async start(options?: ScavengeOptions): Promise<ScavengeStarted> {
    return this.#scavenger().start(options);
  }
  async stop(scavengeId: string): Promise<string> {
    return this.#scavenger().stop(scavengeId);
  }
  current(): string | null {
    return this.#open()?.current() ?? null;
  }
  last(): LastScavenge | null {
    return this.#open()?.last() ?? null;
  }
  async waiting(): Promise<ResumedPoint | null> {
    return this.#scavenger().waiting();
  }
  lastOptions(): ScavengeOptions {
    return this.#open()?.lastOptions() ?? {};
  }
  progress(): ScavengeProgress | null {
    return this.#open()?.progress() ?? null;
  }
  async startDryRun(options?: ScavengeOptions): Promise<{ readonly scavengeId: string }> {
    return this.#scavenger().startDryRun(options);
  }
  async dryRun(scavengeId: string): Promise<DryRunReport | null> {
    return this.#scavenger().dryRun(scavengeId);
  }
  async explain(stream: string): Promise<Explanation> {
    return this.#scavenger().explain(stream);
  }
  hold(): () => void {
    return this.#scavenger().hold();
  }
  async idle(): Promise<void> {
    await this.#open()?.idle();
  }
  async close(): Promise<void> {
    await this.#open()?.close();
  }
}
