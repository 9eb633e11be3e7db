import type { TestResult } from '../../core/webhook/api.ts';
import { coloursFor } from '../cli/colour.ts';
import type { Io } from '../cli/io.ts';
import { line } from '../cli/io.ts';

const OUTCOMES: Readonly<Record<TestResult['outcome'], string>> = {
  'routed': 'routed', 'skipped': 'skipped: nothing would be written, status 400', 'failed': 'failed, status 500', 'timed-out': 'timed out, status 500',
  'unavailable': 'unavailable, status 503', 'invalid-json': 'no JSON, status 400',
};

/** What would come of the call, for people. */
export function showTrial({ outcome, stream, schema, error, durationMs }: TestResult, io: Io): void {
  const { bold, green, red, yellow } = coloursFor(io.stdout, io.env);
  const paint = outcome === 'routed' ? green : outcome === 'skipped' ? yellow : red;
  line(io.stdout, `Outcome:  ${paint(OUTCOMES[outcome])}`);
  if (stream !== null) {
    line(io.stdout, `Stream:   ${bold(stream)}`);
    line(io.stdout, `Schema:   ${schema ?? 'none: the type is WebhookReceived'}`);
  }
  if (error !== null) line(io.stdout, `Why:      ${error}`);
  line(io.stdout, `Duration: ${durationMs.toFixed(2)} ms`);
}
