import type { Repository } from './repository-api.ts';

/** The object that says which backup was last proven to be good. */
const PROVEN_KEY = 'proven';

/** A backup that was restored, opened and verified. */
export interface ProvenBackup {
  readonly backupId: string;
  /** When that was: milliseconds since 1970. */
  readonly provenMs: number;
  /** Where its log ends. */
  readonly position: number;
}

/** The backup that a drill proved last; null when none has. Rejects with `repository_damaged`. */
export async function lastProven(repository: Repository): Promise<ProvenBackup | null> {
  const value = await repository.readObject(PROVEN_KEY);
  return value === null ? null : (value as ProvenBackup);
}

/** Notes a proven backup. Two drills that end together leave either's. */
export function noteProven(repository: Repository, proven: ProvenBackup): Promise<void> {
  return repository.writeObject(PROVEN_KEY, proven);
}
