/** What says that a write was refused for what it asks. */
export const REFUSALS = [
  'wrong_expected_version',
  'stream_deleted',
  'stream_not_found',
  'batch_too_large',
  'condition_failed',
];
/** What says that a write was certainly not made, or a read not served, now. */
export const PASSING = [
  'storage_unreachable',
  'storage_throttled',
  'commit_contended',
  'too_busy',
  'not_ready',
  'store_closed',
  'writer_stopped',
  'disk_full',
  'not_leader',
  'no_leader',
  'write_expired',
  'log_diverged',
  'sync_failed',
  'index_off',
  'index_building',
];
