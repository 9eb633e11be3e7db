import { isAutoScavengePath } from './auto-scavenge-context.ts';
import { isBackupPath } from './backup-context.ts';
import type { App } from './context.ts';
import { isWebhookPath } from './webhooks.ts';

/** Whether what stands behind a path is there: connectors, schedules and backups are not everywhere. */
export function isPresent(app: App, path: string): boolean {
  if (isWebhookPath(path)) return app.webhooks != null;
  if (isAutoScavengePath(path)) return app.autoScavenge != null;
  return !isBackupPath(path) || app.backups != null;
}
