import { vi } from 'vitest';

/**
 * The time of the whole process, which passes by itself and can be moved on (`vi.advanceTimersByTime`). A file that
 * imports this has a process of its own, and imports it before anything else: modules of the node keep the timers that
 * they find.
 */
vi.useFakeTimers({
  toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'Date'],
  shouldAdvanceTime: true,
});
