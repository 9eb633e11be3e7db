/** All functions in one module, by their names, for a machine that serves them. */
export * as webhook from './webhook.ts';
export * as admin from './admin.ts';
export * as streams from './streams.ts';
export * as tick from './tick.ts';
