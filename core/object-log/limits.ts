/** Limits and defaults of the log on object storage. */

export const CHUNK_SIZE_DEFAULT_BYTES = 16_777_216;
export const FRESH_DEFAULT_MS = 300_000;
export const REMOVE_AFTER_DEFAULT_MS = 3_600_000;
export const COMMIT_ATTEMPTS_DEFAULT_MAX = 30;
export const COMMIT_DEADLINE_DEFAULT_MS = 20_000;
export const CACHE_DEFAULT_BYTES = 16_777_216;
export const INDEX_CACHE_DEPTH_DEFAULT = 14;

/** A commit carries those before it back to the last multiple of this number, ... */
export const CARRY_SPAN_COMMITS = 128;
/** ... as far as they fit into this many bytes. */
export const CARRY_BYTES_MAX = 65_536;

/** Commits that an instance keeps in memory because no manifest has taken them in yet, and the bytes of their records. */
export const TAIL_COMMITS_MAX = 262_144;
export const TAIL_BYTES_MAX = 268_435_456;
/** A newer manifest is looked for when the tail has grown by this much since the last look. */
export const LOOK_TAIL_BYTES = 16_777_216;

/** Requests for commits under way at once while the tail is read. */
export const TAIL_READS_MAX = 8;
/** A load begins anew when what it reads goes away meanwhile, this often. */
export const LOADS_MAX = 5;
/** Commits that may lie between the one that is known and the one that is asked for next. */
export const GALLOP_MAX = 128;

/** Waits between attempts whose outcome is not known. */
export const UNDECIDED_WAIT_FIRST_MS = 50;
export const UNDECIDED_WAIT_MAX_MS = 2_000;
/** Waits of a writer that lost: a random part of this, doubled with every further loss up to the second. */
export const LOST_WAIT_FIRST_MS = 10;
export const LOST_WAIT_MAX_MS = 640;
/** While somebody waits for events, other writers' commits are asked for this often. */
export const POLL_MS = 1_000;

/** Event ids that an instance remembers, and how far back in its stream an id is looked for that is not among them. */
export const RECENT_IDS = 32_768;
export const ID_LOOKBACK_EVENTS = 1_000;
