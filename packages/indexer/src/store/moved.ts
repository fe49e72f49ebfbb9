/** Somebody else has moved what this transaction builds on: another process indexes the same network, or a watch changed. */
export class Moved extends Error {
  override readonly name = 'Moved';
}
