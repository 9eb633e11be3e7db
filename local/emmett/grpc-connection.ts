import { StreamGone, VersionConflict } from './emmett-connection.ts';
import type { Appended, Connection, Expected, IncomingEvent, OutgoingEvent } from './emmett-connection.ts';
import { refuseNoJson } from './emmett-events.ts';
import type { OfficialClient } from './api.ts';

/** A version that no stream reaches. */
const NO_VERSION = BigInt(Number.MAX_SAFE_INTEGER);

/** What the two generations of the official client have in common of their errors. */
interface ClientError {
  readonly type?: string;
  /** The older one; `no_stream` where there is none. */
  readonly actualVersion?: unknown;
  /** The newer one. */
  readonly actualState?: unknown;
}

/**
 * Over an official client of either generation, which the caller made and disposes of. Nothing of its package is loaded
 * here.
 */
export function grpcConnection(client: OfficialClient): Connection {
  async function read(
    stream: string,
    from: bigint,
    limit: bigint | undefined,
    each: (event: IncomingEvent) => void,
  ): Promise<boolean> {
    let thrown: { readonly error: unknown } | null = null;
    try {
      for await (const { event } of client.readStream(stream, {
        direction: 'forwards',
        fromRevision: from,
        ...(limit !== undefined && { maxCount: limit }),
      })) {
        if (event === undefined || thrown !== null) continue;
        try {
          each({
            id: event.id,
            type: event.type,
            version: event.revision,
            position: event.position?.commit ?? 0n,
            data: event.data,
            metadata: event.metadata,
          });
        } catch (error) {
          // Read on to the end: the older client is never disposed of where a read was left.
          thrown = { error };
        }
      }
    } catch (error) {
      if (typeOf(error) === 'stream-not-found') return false;
      throw gone(error);
    }
    if (thrown !== null) throw thrown.error;
    return true;
  }

  async function lastVersion(stream: string): Promise<bigint | null> {
    let last: bigint | null = null;
    try {
      for await (const { event } of client.readStream(stream, {
        direction: 'backwards',
        fromRevision: 'end',
        maxCount: 1,
      }))
        last = event?.revision ?? null;
    } catch (error) {
      if (typeOf(error) === 'stream-not-found') return null;
      throw gone(error);
    }
    return last ?? hiddenVersion(stream);
  }

  /**
   * Where the stream's metadata hide all of its events, no read tells its version, but the refusal of a write does that
   * has nothing in it.
   */
  async function hiddenVersion(stream: string): Promise<bigint | null> {
    try {
      await append(stream, [], NO_VERSION);
    } catch (error) {
      if (error instanceof VersionConflict) return error.actual;
      throw error;
    }
    throw new Error(`The server accepted a write to '${stream}' that expects an impossible version.`);
  }

  async function append(stream: string, events: readonly OutgoingEvent[], expected: Expected): Promise<Appended> {
    // The clients would neither resolve nor reject, and leave an unhandled rejection, which ends the process.
    refuseNoJson(events);
    const revision = expected === 'none' ? 'no_stream' : expected === 'exists' ? 'stream_exists' : expected;
    try {
      // The older generation knows the first name of what is expected, the newer one the second.
      const options = { expectedRevision: revision, streamState: revision };
      const { nextExpectedRevision, position } = await client.appendToStream(
        stream,
        events.map((event) => ({ ...event, contentType: 'application/json' })),
        options,
      );
      return { version: nextExpectedRevision, position: position?.commit ?? null };
    } catch (error) {
      if (typeOf(error) !== 'wrong-expected-version') throw gone(error);
      const { actualVersion, actualState = actualVersion } = error as ClientError;
      throw new VersionConflict(typeof actualState === 'bigint' && actualState >= 0n ? actualState : null, error);
    }
  }

  return { read, lastVersion, append };
}

function typeOf(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null ? (error as ClientError).type : undefined;
}

function gone(error: unknown): unknown {
  return typeOf(error) === 'stream-deleted' || typeOf(error) === 'stream-tombstoned' ? new StreamGone(error) : error;
}
