import type { FlatContext } from '../support/app-context.ts';
import type { Log } from '../../core/ports/log.ts';
import type { ModelStore } from '../support/model-store.ts';
import { FakeSecurity } from '../support/fake-security.ts';
import { harness } from './harness.ts';

/** `Authorization` of these credentials. */
export function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`, 'utf8').toString('base64')}`;
}

/** Headers of a caller that a FakeSecurity of `secured` knows. */
export const AS = {
  anonymous: {},
  wrong: { authorization: basic('kim', 'wr0ng-secret') },
  plain: { authorization: basic('kim', 'kim:pass') },
  ops: { authorization: basic('olga', 'olga-pass') },
  keeper: { authorization: basic('bo', 'bo-pass') },
  admin: { authorization: basic('ada', 'ada-pass') },
} as const;

/** Lines of a log, as they were written. */
export class LogLines implements Log {
  readonly lines: { readonly level: string; readonly message: string; readonly fields: Record<string, unknown> }[] = [];
  debug(message: string, fields: Record<string, unknown> = {}): void {
    this.lines.push({ level: 'debug', message, fields });
  }
  info(message: string, fields: Record<string, unknown> = {}): void {
    this.lines.push({ level: 'info', message, fields });
  }
  warn(message: string, fields: Record<string, unknown> = {}): void {
    this.lines.push({ level: 'warn', message, fields });
  }
  error(message: string, fields: Record<string, unknown> = {}): void {
    this.lines.push({ level: 'error', message, fields });
  }
}

/** The handlers with security: `kim` in no group, `olga` in `$ops`, `ada` in `$admins`. */
export function secured(context: Partial<FlatContext> = {}) {
  let store: ModelStore | null = null;
  const fake = new FakeSecurity({ streamInfo: (stream) => store!.streamInfo(stream) });
  fake.add('kim', 'kim:pass', []);
  fake.add('olga', 'olga-pass', ['$ops']);
  fake.add('ada', 'ada-pass', ['$admins']);
  const h = harness({ security: fake, ...context });
  store = h.store;
  return { ...h, security: fake };
}
