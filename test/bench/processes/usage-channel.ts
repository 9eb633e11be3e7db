/**
 * Loaded before a server whose processor time and memory are measured from outside: answers each message of the parent
 * with what the process, all its threads together, has taken so far.
 */
export interface Usage {
  /** Processor time, user and system. */
  readonly cpuMs: number;
  readonly residentMiB: number;
}

process.on('message', (message) => {
  // Two collections, so that what is measured is held, and not what has not been looked at yet; only where the process
  // offers them.
  if (message === 'collected') for (let i = 0; i < 2; i++) globalThis.gc?.();
  const { user, system } = process.cpuUsage();
  process.send!({ cpuMs: (user + system) / 1_000, residentMiB: process.memoryUsage.rss() / 2 ** 20 } satisfies Usage);
});
// Being asked is no reason to stay.
process.channel?.unref();
