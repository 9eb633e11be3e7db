import { userInfo } from 'node:os';
import { isSkuaError } from '../../core/base/errors.ts';
import type { AuditAction } from '../../core/ports/audit.ts';
import { silentLog } from '../../core/ports/log.ts';
import { silentMeter } from '../../core/ports/meter.ts';
import { systemClock } from '../../infra/system-clock.ts';
import { CommandError } from '../../infra/runtime/failure.ts';
import { EXIT, line } from '../../infra/runtime/io.ts';
import type { ExitCode, Io } from '../../infra/runtime/io.ts';
import { AuditTrail } from './audit-trail.ts';

interface CommandAudit {
  /** As the option AuditLog of a node names it; null for none. */
  readonly file: string | null;
  readonly action: AuditAction;
  /** The directory or repository that is worked on. */
  readonly target: string | null;
}

const SIZE_BYTES = 1_073_741_824;

/**
 * Runs a command that changes a directory or repository past any node, and writes to an audit file what came of it.
 * What removes old files of the audit is the node, by its options, and never a command.
 */
export async function withAudit(
  { file, action, target }: CommandAudit,
  io: Io,
  run: () => Promise<ExitCode>,
): Promise<ExitCode> {
  if (file === null) return run();
  const trail = new AuditTrail({
    file: { name: file, sizeBytes: SIZE_BYTES, interval: 'Day', retention: Number.MAX_SAFE_INTEGER },
    clock: systemClock,
    log: silentLog,
    meter: silentMeter,
  });
  const user = userInfo().username;
  try {
    const code = await run();
    trail.own(action, {
      user,
      target,
      outcome: code === EXIT.ok ? 'success' : 'failed',
      details: { by: 'command line', exitCode: code },
    });
    return code;
  } catch (error) {
    trail.own(action, {
      user,
      target,
      outcome: 'failed',
      code: isSkuaError(error) || error instanceof CommandError ? error.code : null,
      details: { by: 'command line' },
    });
    throw error;
  } finally {
    await trail.close();
    if (trail.view.entriesLost > 0)
      line(io.stderr, `warning: ${file} cannot be written, so this command is not in the audit.`);
  }
}
