import type { OptionGroup, ValuesOf } from './option.ts';
import { application } from './table/application.ts';
import { autoScavenge, licensing } from './table/auto-scavenge.ts';
import { backup } from './table/backup.ts';
import { connectors } from './table/connectors.ts';
import { database, scavenge } from './table/database.ts';
import { logging } from './table/logging.ts';
import { cluster, network } from './table/network.ts';
import { certificates, users } from './table/security.ts';

/** Every option of a node, by its name in YAML. */
export const OPTIONS = { ...application, ...network, ...cluster, ...database, ...scavenge, ...autoScavenge, ...licensing, ...backup, ...certificates, ...users, ...connectors, ...logging };

export type OptionName = keyof typeof OPTIONS;
export type Values = ValuesOf<typeof OPTIONS>;

/** The same in the order of help and documentation. */
export const OPTION_GROUPS: readonly OptionGroup[] = [
  { title: 'Application Options', options: application },
  { title: 'Network Options', options: network },
  { title: 'Database Options', options: database },
  { title: 'Scavenge Options', options: scavenge },
  { title: 'Auto-Scavenge Options', options: autoScavenge },
  { title: 'Licensing Options', options: licensing },
  { title: 'Backup Options', options: backup },
  { title: 'Certificate Options', options: certificates },
  { title: 'User Options', options: users },
  { title: 'Connector Options', options: connectors },
  { title: 'Logging Options', options: logging },
  { title: 'Cluster Options', options: cluster },
];
