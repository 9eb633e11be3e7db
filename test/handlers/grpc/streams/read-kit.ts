import { silentLog } from '../../../../core/ports/log.ts';
import { silentMeter } from '../../../../core/ports/meter.ts';
import { StreamsService } from '../../../../handlers/grpc/messages/streams.ts';
import type { Json } from '../../../grpc/codec.ts';
import { clientFor } from '../../../grpc/harness.ts';
import { setUp } from '../../../streams/setup.ts';
import type { SetupOptions } from '../../../streams/setup.ts';
import { contextOf } from '../../../support/app-context.ts';
import type { FlatContext } from '../../../support/app-context.ts';
import { FakeScavenger } from '../../../support/fake-scavenger.ts';
import { SeededIds } from '../../../support/seeded-ids.ts';
import { stream } from './kit.ts';

export const READ = StreamsService.methods.Read.path;

/** gRPC over the real store in memory. */
export function realGrpc(options: SetupOptions = {}, context: Partial<FlatContext> = {}) {
  const { store, clock, ...rest } = setUp(options);
  return {
    ...rest,
    store,
    clock,
    ...clientFor(
      contextOf({
        store,
        clock,
        scavenger: new FakeScavenger(),
        ids: new SeededIds(3),
        log: silentLog,
        meter: silentMeter,
        security: null,
        node: null,
        ...context,
      }),
    ),
  };
}

/** A request to read, with what every one of them has. */
export function readOf(options: Json): Json {
  return { options: { no_filter: {}, uuid_option: { string: {} }, ...options } };
}

export function streamRead(name: string, from: Json, more: Json): Json {
  return readOf({ stream: { ...stream(name), ...from }, ...more });
}

/** What a message is about, in short. */
export function gist(message: Json): string {
  const { event, checkpoint, confirmation, caught_up: caughtUp, stream_not_found: missing, ...others } = message as any;
  if (event !== undefined) {
    const named = (one: any): string =>
      `${one.stream_revision ?? 0}@${Buffer.from(one.stream_identifier.stream_name, 'base64').toString()}`;
    return [
      event.event === undefined ? 'gone' : named(event.event),
      ...(event.link === undefined ? [] : [`by ${named(event.link)}`]),
    ].join(' ');
  }
  if (checkpoint !== undefined)
    return `checkpoint ${checkpoint.commit_position ?? 0}/${checkpoint.prepare_position ?? 0}`;
  if (confirmation !== undefined) return 'confirmed';
  if (caughtUp !== undefined) return 'caught up';
  return missing === undefined ? JSON.stringify(others) : 'not found';
}
