/**
 * The timers of Node.js as they were when the program was loaded. In a test node the tests of others run in the same
 * process, and may put timers that stand still (fake ones) in the place of the global ones.
 */
export const { setImmediate, setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
