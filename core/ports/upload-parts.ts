/** An upload of at most this many bytes is one request. */
export const SINGLE_UPLOAD_BYTES_MAX = 16_777_216;
/** Parts that an upload may have, as S3 has it. */
export const UPLOAD_PARTS_MAX = 10_000;
/** Bytes of a part, except for uploads that would have too many of them. */
const PART_BYTES = 8_388_608;

/** Bytes of each part but the last: whole MiB. */
export function uploadPartBytes(sizeBytes: number): number {
  return Math.max(PART_BYTES, Math.ceil(sizeBytes / UPLOAD_PARTS_MAX / 1_048_576) * 1_048_576);
}
