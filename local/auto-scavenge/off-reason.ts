import type { Values } from '../config/options.ts';

/** Why auto-scavenge is off whatever the licence says (auto-scavenge.md section 2.1); null when it is not. */
export function offReason(values: Pick<Values, 'AutoScavenge:Enabled' | 'Dev' | 'MemDb'>): string | null {
  if (values['AutoScavenge:Enabled'] === false) return 'The option AutoScavenge:Enabled is false.';
  if (values.Dev) return 'The node runs in dev mode (option Dev).';
  return values.MemDb ? 'The database is kept in memory (option MemDb).' : null;
}
