/** The files of the stream existence filter. */

const FOLDER = 'index/stream-existence';
export const EXISTENCE_DATA_PATH = `${FOLDER}/streamExistenceFilter.dat`;
export const EXISTENCE_CHECKPOINT_PATH = `${FOLDER}/streamExistenceFilter.chk`;
/** Unit in which changes are written. Pages that were never used are zeros, and take no room on a disk that knows holes. */
export const PAGE_BYTES = 8_192;
