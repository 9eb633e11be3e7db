import { projector, reactor } from 'emmett-current';
import type { Position, RecordedEvent } from '../event-store/api.ts';
import { isSkuaError } from '../event-store/store-errors.ts';
import { project } from '../project/index.ts';
import type { Model } from '../project/index.ts';
import { SkuaEventStoreError } from './emmett-errors.ts';
import { recorded } from './emmett-events.ts';
import { failureOf } from './store-connection.ts';
import type { ProjectedEventStore, SkuaConsumer, SkuaConsumerOptions, SkuaReadEvent } from './api.ts';

type Processor = SkuaConsumer['processors'][number];

/**
 * Processors of Emmett over one store. Each is a projection of its own: it goes on from its own checkpoint, at its own
 * pace, and no event is held for a slower one.
 */
export function consumerOf(
  store: ProjectedEventStore,
  close: () => Promise<void>,
  { consumerId = crypto.randomUUID(), processors: given = [], store: model, onErased, ...filter }: SkuaConsumerOptions,
): SkuaConsumer {
  const processors: Processor[] = [...given];
  let running: { readonly ending: AbortController; readonly ended: Promise<void> } | null = null;

  /** Gives a processor its events until it has enough, or the signal aborts. */
  async function feed(processor: Processor, signal: AbortSignal): Promise<void> {
    const enough = new AbortController();
    const from = await processor.start({});
    const projection = project<unknown>(store, {
      name: processor.id,
      filter,
      after: from === undefined || from === 'BEGINNING' ? 'start' : from === 'END' ? 'end' : placeOf(from),
      store: model ?? placeOfRun(),
      on: {},
      onOther: async (tx, event) => {
        const result = await processor.handle([messageOf(event)], model === undefined ? {} : { tx });
        if (result?.type === 'STOP' && result.error !== undefined) throw result.error;
        if (!processor.isActive) enough.abort();
      },
      ...(onErased !== undefined && { onErased: (_, event) => onErased(messageOf(event)) }),
    });
    await projection.run({ signal: AbortSignal.any([signal, enough.signal]) });
  }

  async function run(ending: AbortController): Promise<void> {
    const ends = processors.map(async (processor) => {
      try {
        await feed(processor, ending.signal);
      } catch (error) {
        // The others end before their next event.
        ending.abort();
        throw failureOf(isSkuaError(error, 'projection_failed') ? error.cause : error);
      }
    });
    const failed = (await Promise.allSettled(ends)).find((end) => end.status === 'rejected');
    // Also after a failure: one that stays active would not tell its checkpoint when it is started again.
    for (const processor of processors) await processor.close({});
    if (failed !== undefined) throw failed.reason;
  }

  async function stop(): Promise<void> {
    running?.ending.abort();
    // What it ended with is told by `start`.
    await running?.ended.catch(() => {});
  }

  return {
    consumerId,
    processors,
    get isRunning() {
      return running !== null;
    },
    reactor: (options) => added(reactor(options)),
    projector: (options) => added(projector(options)),

    start() {
      if (running !== null) return running.ended;
      if (processors.length === 0)
        return Promise.reject(
          new SkuaEventStoreError('bad_option', 400, 'A consumer needs processors: add one before it is started.'),
        );
      const ending = new AbortController();
      const ended = run(ending).finally(() => {
        running = null;
      });
      running = { ending, ended };
      return ended;
    },
    stop,
    async close() {
      await stop();
      await close();
    },
  };

  function added<P>(processor: P): P {
    if (running !== null)
      throw new SkuaEventStoreError('bad_option', 400, 'The consumer is running: add processors before it is started.');
    processors.push(processor as Processor);
    return processor;
  }
}

/** A processor that keeps its checkpoint itself, or none, is told where it begins; the place is kept while it runs. */
function placeOfRun(): Model<undefined> {
  let text: string | null = null;
  return {
    rollsBack: false,
    load: async () => text,
    commit: async (_, __, work) => {
      text = await work(undefined);
      return true;
    },
  };
}

function placeOf({ lastCheckpoint }: { readonly lastCheckpoint: unknown }): Position {
  const at = Number(lastCheckpoint);
  return { commit: at, prepare: at };
}

function messageOf(event: RecordedEvent): SkuaReadEvent {
  const { commit, prepare } = event.position;
  // Their checkpoints are one number each, and these events have one for all.
  if (commit !== prepare)
    throw new SkuaEventStoreError(
      'not_consumable',
      500,
      `Event ${event.version} of '${event.stream}' was written by an explicit transaction, whose events have one position: read its stream by readStream.`,
    );
  return recorded(event.stream, {
    ...event,
    version: BigInt(event.version),
    position: BigInt(commit),
  });
}
