import type { ResumedPointDocument } from '../../handlers/documents/scavenging.ts';
import { line } from '../../infra/runtime/io.ts';
import type { Output } from '../../infra/runtime/io.ts';

/** What is told of the commands that go on from here: those of a running node, or of a directory. */
export interface Ways {
  /** Goes on with what waits. */
  readonly start: string;
  /** Goes on with it, and then runs another. */
  readonly untilClean: string;
}

export const NODE_WAYS: Ways = { start: 'skua scavenge start', untilClean: 'skua scavenge start --wait --until-clean' };

export function directoryWays(directory: string): Ways {
  const start = `skua scavenge offline ${directory}`;
  return { start, untilClean: `${start} --until-clean` };
}

/** `2026-07-01T12:00:00Z`: a moment without its fraction, which is not needed to distinguish two scavenges. */
export function momentOf({ effectiveNow }: ResumedPointDocument): string {
  return effectiveNow.replace(/\.\d{1,7}/, '');
}

const KEEPS_THRESHOLD = ({ threshold }: ResumedPointDocument): string =>
  threshold === 0 ? '' : `, with its threshold of ${threshold}`;

/** Says of a run that it goes to an older point. */
export function logResumedPoint(point: ResumedPointDocument, output: Output): void {
  const moment = momentOf(point);
  const what =
    point.why === 'unfinished'
      ? `It resumes the scavenge of ${moment}`
      : `It uses the scavenge point of ${moment}, which no run has reached`;
  line(
    output,
    `${what}, up to that time (position ${point.position})${KEEPS_THRESHOLD(point)}; what was deleted or has expired since needs another run.`,
  );
}

/** What waits, and how to go on with it. */
export function waitingLines(point: ResumedPointDocument, { start, untilClean }: Ways): string[] {
  const moment = momentOf(point);
  return [
    point.why === 'unfinished'
      ? `A scavenge is unfinished: it was started at ${moment} and covers the log up to that time (position ${point.position})${KEEPS_THRESHOLD(point)}.`
      : `A scavenge point of ${moment} (position ${point.position}) is pending: no run has reached it, and the next one covers the log up to that time${KEEPS_THRESHOLD(point)}.`,
    `  ${start}  ${point.why === 'unfinished' ? 'resumes it' : 'uses it'}; what was deleted or has expired since needs another run`,
    `  ${untilClean}  does that, then starts the other run`,
    `  ${start} --fresh  ${point.why === 'unfinished' ? 'abandons it and ' : ''}starts at a new point`,
  ];
}

/** Beside what a new scavenge would do. */
export function notTheNextLine(point: ResumedPointDocument, { start }: Ways): string {
  const moment = momentOf(point);
  const what =
    point.why === 'unfinished'
      ? `resumes the scavenge of ${moment}, up to that time`
      : `uses the scavenge point of ${moment}`;
  return `This is what a new scavenge would do. The next start ${what}; what was deleted or has expired since then needs another run, or start with \`${start} --fresh\`.`;
}
