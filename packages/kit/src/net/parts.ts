/**
 * Parts of a body that may come beyond one for each so many bytes of its limit. Each costs some ten microseconds, whatever its size: what comes
 * byte by byte from somebody near would take this process whole. A segment of TCP has 500 bytes or more, but for the last one.
 */
const PARTS_MAX = 1_024;
const PART_BYTES = 256;

/** How many parts so many bytes may come in. */
export const partsMaxOf = (sizeBytes: number): number => PARTS_MAX + sizeBytes / PART_BYTES;
