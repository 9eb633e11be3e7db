import { effect } from '@preact/signals';
import { overview } from '../api/overview-client.ts';
import { mayUse, session } from '../api/page-session.ts';
import { record } from '../lib/history.ts';
import { tellNodeName } from './node-name.ts';

/** The history that it writes. */
export const OVERVIEW_HISTORY = 'overview';
const EVERY_MS = 5_000;

/**
 * Measures the node for as long as the page is open, whichever view is shown: charts begin with what there was before
 * one looked at them.
 */
export function startSampler(): void {
  effect(() => {
    if (session.value === null || !mayUse('operators')) return;
    const polled = overview();
    const leave = polled.use(EVERY_MS);
    const stop = effect(() => {
      const data = polled.data.value;
      if (data === null) return;
      const { node, activity, log, disk, process } = data;
      tellNodeName(node.address);
      record(OVERVIEW_HISTORY, Date.parse(data.time), {
        appends: activity.appendsPerSecond,
        written: activity.eventsWrittenPerSecond,
        read: activity.eventsReadPerSecond,
        requests: activity.requestsPerSecond,
        bytesWritten: activity.bytesWrittenPerSecond,
        bytesRead: activity.bytesReadPerSecond,
        appendP99: inMs(activity.appendP99Seconds),
        requestP99: inMs(activity.requestP99Seconds),
        cpu: process.cpuPercent === null ? null : process.cpuPercent / 100,
        memory: process.memoryBytes,
        heap: process.heapBytes,
        logEnd: log.end,
        free: disk?.freeBytes ?? null,
      });
    });
    return () => {
      stop();
      leave();
    };
  });
}

export function inMs(seconds: number | null): number | null {
  return seconds === null ? null : seconds * 1_000;
}
