import { SkuaError } from '../../core/errors.ts';

/** What is wrong with one file. */
export interface Problem {
  readonly file: string;
  readonly reason: string;
}

/** One error for all that is wrong; its data holds the first problem as `file` and `reason`, and all as `problems`. */
export function certificateInvalid(problems: readonly Problem[]): SkuaError {
  const [first] = problems;
  const message = problems.map(({ file, reason }) => `${file}: ${reason}`).join(' ');
  return new SkuaError('certificate_invalid', message, { file: first!.file, reason: first!.reason, problems });
}

/** Ends a step whose failure leaves nothing more to look at. */
export function refuse(file: string, reason: string): never {
  throw certificateInvalid([{ file, reason }]);
}
