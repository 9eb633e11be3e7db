/** What the deployment gives its functions, and the local twin too. */

/** The gateway waits for 30 seconds. */
export const HTTP_TIMEOUT_SECONDS = 29;
/** The most that the platform grants; a tick ends long before, at its own deadline. */
export const TICK_TIMEOUT_SECONDS = 900;
/** A tick works for so long, less than its period, so that two ticks meet only when something is wrong. */
export const TICK_SECONDS = 50;
export const TICK_PERIOD_SECONDS = 60;
